//! A shell command on several lines, which a shell joins again.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One line of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) text: String,
    /// The line has no indent: it continues a word, which blanks would split, or its word needs the room.
    pub(super) at_margin: bool,
}

/// Columns of the sign at the end of a line.
const SIGN: usize = 2;
/// Columns by which later lines are indented more than the first.
const HANG: usize = 2;

/// A command in lines of at most `width` columns, of which `indent` are taken in lines that start with a word.
///
/// Lines end between words; a word that fits on no line is broken, which a shell undoes too.
pub(super) fn continued(command: &str, indent: usize, width: usize) -> Vec<CommandLine> {
    if indent + command.width() <= width {
        return vec![CommandLine { text: command.to_owned(), at_margin: false }];
    }
    let mut lines: Vec<CommandLine> = vec![CommandLine { text: String::new(), at_margin: false }];
    let room = |lines: &[CommandLine]| match lines {
        [_] => width.saturating_sub(indent + SIGN),
        [.., last] if last.at_margin => width.saturating_sub(SIGN),
        _ => width.saturating_sub(indent + HANG + SIGN),
    };
    for word in words(command) {
        let used = lines.last().map_or(0, |line| line.text.width());
        if used > 0 && used + 1 + word.width() <= room(&lines) {
            append(&mut lines, " ");
        } else if used > 0 {
            append(&mut lines, " \\");
            // Better at the margin than broken.
            let at_margin = word.width() > width.saturating_sub(indent + HANG + SIGN) && word.width() + SIGN <= width;
            lines.push(CommandLine { text: String::new(), at_margin });
        }
        let mut pieces = broken(word, room(&lines), width).into_iter();
        append(&mut lines, &pieces.next().unwrap_or_default());
        lines.extend(pieces.map(|text| CommandLine { text, at_margin: true }));
    }
    lines
}

fn append(lines: &mut [CommandLine], text: &str) {
    if let Some(last) = lines.last_mut() {
        last.text += text;
    }
}

/// The words of a command, with their quotes.
fn words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut quote, mut is_escaped) = (0, None, false);
    for (at, letter) in command.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if quote != Some('\'') => is_escaped = true,
            '\'' | '"' if quote == Some(letter) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(letter),
            ' ' if quote.is_none() => {
                words.push(&command[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&command[start..]);
    words
}

/// A word in pieces: the first of `first` columns, the others of `rest`; all but the last end with a backslash.
fn broken(word: &str, first: usize, rest: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut room = first.max(MIN);
    let (mut used, mut is_quoted, mut is_escaped) = (0, false, false);
    let mut before = None;
    if word.width() <= room {
        return vec![word.to_owned()];
    }
    for letter in word.chars() {
        let columns = letter.width().unwrap_or(0);
        // A quote is closed before the line ends and opened again after it.
        let can_end = !is_escaped && (is_quoted && letter != '\'' || is_plain(letter) && before.is_some_and(is_plain));
        if can_end && used + columns + RESERVE > room {
            let (close, open) = if is_quoted { ("'", "'") } else { ("", "") };
            if let Some(piece) = pieces.last_mut() {
                *piece += close;
                piece.push('\\');
            }
            pieces.push(open.to_owned());
            (used, room) = (open.len(), rest.max(MIN));
        }
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if !is_quoted => is_escaped = true,
            '\'' => is_quoted = !is_quoted,
            _ => {}
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(letter);
        }
        used += columns;
        before = (!is_escaped).then_some(letter);
    }
    pieces
}

/// Columns kept free in a piece: for a quote, the backslash, and letters that cannot be separated.
const RESERVE: usize = 5;
/// The shortest piece of a word, however narrow the page is.
const MIN: usize = 8;

/// Whether a letter has no meaning for a shell.
fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "/._-+:@%=,".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(command: &str, indent: usize, width: usize) -> Vec<String> {
        let line = |line: CommandLine| if line.at_margin { format!("|{}", line.text) } else { line.text };
        continued(command, indent, width).into_iter().map(line).collect()
    }

    #[test]
    fn a_long_command_ends_its_lines_between_words() {
        let command = "emmclab plan hwpart /a/long/name.hex --wrrel on";
        assert_eq!(lines(command, 13, 60), [command]);
        assert_eq!(lines(command, 0, 31), ["emmclab plan hwpart \\", "/a/long/name.hex --wrrel on"]);
        assert_eq!(lines(command, 4, 31), ["emmclab plan hwpart \\", "/a/long/name.hex \\", "--wrrel on"]);
        assert_eq!(lines("x 'a b' cc", 0, 8), ["x \\", "|'a b' \\", "cc"]);
    }

    #[test]
    fn a_word_that_fits_on_no_line_is_broken_and_its_quotes_are_closed() {
        let long = "a/long-name".repeat(12);
        for command in [
            format!("x {long} --full"),
            format!("x '{long} {long}' --full"),
            format!(r"x '{long}'\''{long}' --full"),
            format!(r#"x "$(printf '{long}\033{long}')" --full"#),
        ] {
            for (indent, width) in [(13, 40), (13, 80), (2, 100)] {
                let lines = continued(&command, indent, width);
                let mut joined = String::new();
                for line in &lines {
                    let columns = line.text.width() + if line.at_margin { 0 } else { indent };
                    assert!(columns <= width, "{columns} of {width}: {line:?}");
                    // A shell drops a backslash at the end of a line together with the line break.
                    joined = format!("{}{}", joined.trim_end_matches('\\'), line.text);
                }
                assert_eq!(joined.replace("''", ""), command.replace("''", ""));
                assert!(lines.iter().any(|line| line.at_margin) && lines[0].text.ends_with('\\'), "{lines:?}");
            }
        }
    }
}
