//! Which names are most like another one, for messages.

/// How many letters must be changed, put in or left out to make one name of another, whatever their case.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, char) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (at, &second) in other.iter().enumerate() {
            let changed = diagonal + usize::from(char != second);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// The three names that are most like `name`.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|known| distance(name.trim_matches(['<', '>']), known.trim_matches(['<', '>'])));
    names.truncate(3);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_those_with_the_fewest_changes() {
        assert_eq!(["", "a", "abc"].map(|other| distance("abc", other)), [3, 2, 0]);
        assert_eq!(["ABD", "ac", "xabc", "bca"].map(|other| distance("abc", other)), [1, 1, 1, 2]);
        let names = ["<PAD>", "<EOS>", "<FIM_SUFFIX>", "<FIM_PREFIX>", "<FIM_MIDDLE>"];
        assert_eq!(nearest("fim-prefix", names.into_iter())[0], "<FIM_PREFIX>");
        assert_eq!(nearest("<EOT>", names.into_iter())[0], "<EOS>");
    }
}
