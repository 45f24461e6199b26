//! Ends the process with one line where the machine refuses memory, in place of the abort of the standard library.
//!
//! Without memory nothing can be unwound: no error, no traceback. So what is left is to say what was asked for.

#![allow(unsafe_code, reason = "an allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// The exit code of a machine's refusal, `FAILED_CHECK` in `schemas/errors.py`.
const REFUSED: i32 = 1;

unsafe extern "C" {
    /// Ends the process without its exit handlers, which might wait for what this thread holds.
    fn _exit(code: i32) -> !;
}

/// The system's allocator, which never returns without memory.
struct Telling;

#[global_allocator]
static ALLOCATOR: Telling = Telling;

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Telling {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        told(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        told(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        told(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }
}

fn told(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        refuse(bytes);
    }
    block
}

#[cold]
fn refuse(bytes: usize) -> ! {
    let advice = "give --threads 1 and less --memory-bytes, or more memory (ulimit -v)";
    // Neither formatting into standard error nor the exit allocates.
    let _ = writeln!(std::io::stderr(), "error: no more memory: {bytes} bytes more were needed; {advice}");
    // SAFETY: it does not return.
    unsafe { _exit(REFUSED) }
}
