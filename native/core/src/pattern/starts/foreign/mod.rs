//! Where the words of other programs' pre-tokenizers start, and those of prose, as bit masks of 64 bytes each.
//!
//! Their regular expressions never look back, so a word depends only on the text from its start on. What the masks say
//! of ASCII text follows from the classes of neighbouring bytes. White space ends in front of its last character, or
//! behind its last line ending, so it takes a look ahead: up to the end of the next block. A byte is odd where it is
//! beyond ASCII, where a contraction may begin, or where white space goes on for longer than that.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
pub(super) mod bytes;
mod words;

use super::level::Level;
use super::masks::{Block, append as append_blocks};
use crate::pattern::foreign::Foreign;
use words::{CL100K, Contractions, GPT2, Known, O200K, Rules, Spaces, Words};

/// Declares pre-tokenizers with their rules.
macro_rules! known {
    ($($name:ident: $rules:expr;)+) => {
        $(
            struct $name;
            impl Known for $name {
                const RULES: Rules = $rules;
            }
        )+

        /// Appends the starts of `text`, if there are rules for the pre-tokenizer.
        pub(super) fn append(foreign: Foreign, level: Level, text: &[u8], out: &mut Vec<Block>) {
            match foreign {
                $(Foreign::$name => append_known::<$name>(level, text, out),)+
                Foreign::DeepSeekCoder | Foreign::DeepSeekV2 => {}
            }
        }
    };
}

known! {
    Gpt2: GPT2;
    Cl100k: CL100K;
    Qwen2: Rules { digits: 1, ..CL100K };
    O200k: O200K;
    Tekken: Rules { digits: 1, contractions: Contractions::None, ..O200K };
    StarCoder2: Rules { digits: 1, splits_digits: true, ..GPT2 };
    DeepSeekV3: Rules {
        splits_digits: true, contractions: Contractions::None, leaves_controls: true, ..CL100K
    };
}

/// The pattern `text-words-1`.
struct Prose;

impl Known for Prose {
    const RULES: Rules = Rules { spaces: Spaces::Join, joins_underscores: true, ..CL100K };
}

/// Appends the starts of the words of prose in `text`.
pub(super) fn append_prose(level: Level, text: &[u8], out: &mut Vec<Block>) {
    append_known::<Prose>(level, text, out);
}

fn append_known<K: Known>(level: Level, text: &[u8], out: &mut Vec<Block>) {
    match level {
        Level::Fallback => append_blocks(text, Words::<K>::default(), bytes::of, out),
        // Of AVX-512 nothing more is used here.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => avx2::append::<K>(text, out),
    }
}
