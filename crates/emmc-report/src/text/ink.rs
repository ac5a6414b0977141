//! Colour that does not disturb the layout: text is marked with characters of no width, which become ANSI sequences at
//! the end.
//!
//! The marks cannot come from data: [`crate::visible::visible`] writes them out.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthChar;

use crate::{Severity, Tone};

/// The look of one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Good,
    Notice,
    Warn,
    Bad,
    Muted,
    Strong,
}

const MARKED: [(Ink, char); 6] = [
    (Ink::Good, '\u{2061}'),
    (Ink::Notice, '\u{2062}'),
    (Ink::Warn, '\u{2063}'),
    (Ink::Bad, '\u{2064}'),
    (Ink::Muted, '\u{206a}'),
    (Ink::Strong, '\u{206b}'),
];

impl From<Tone> for Ink {
    fn from(tone: Tone) -> Self {
        match tone {
            Tone::Plain => Self::Plain,
            Tone::Good => Self::Good,
            Tone::Notice => Self::Notice,
            Tone::Warn => Self::Warn,
            Tone::Bad => Self::Bad,
            Tone::Muted => Self::Muted,
        }
    }
}

impl From<Severity> for Ink {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::Bad,
            Severity::Warning => Self::Warn,
            Severity::Notice => Self::Notice,
            Severity::Good => Self::Good,
            Severity::Unknown => Self::Muted,
        }
    }
}

impl Ink {
    fn style(self) -> Style {
        let style = Style::new();
        match self {
            Self::Plain => style,
            Self::Good => style.fg_color(Some(AnsiColor::Green.into())),
            Self::Notice => style.fg_color(Some(AnsiColor::Cyan.into())),
            Self::Warn => style.fg_color(Some(AnsiColor::Yellow.into())),
            Self::Bad => style.fg_color(Some(AnsiColor::Red.into())).bold(),
            Self::Muted => style.dimmed(),
            Self::Strong => style.bold(),
        }
    }

    /// The text with a mark before every character that takes a column, so that it can be wrapped anywhere.
    pub(crate) fn mark(self, text: &str) -> String {
        let Some(&(_, mark)) = MARKED.iter().find(|(ink, _)| *ink == self) else { return text.to_owned() };
        let mut out = String::with_capacity(text.len() * 4);
        for c in text.chars() {
            if c != ' ' && c.width().unwrap_or(0) > 0 {
                out.push(mark);
            }
            out.push(c);
        }
        out
    }
}

/// Appends one laid-out line, its marks turned into ANSI sequences, without spaces at its end.
pub(crate) fn push_line(out: &mut String, line: &str) {
    let is_mark = |c: char| MARKED.iter().any(|(_, mark)| *mark == c);
    let line = line.trim_end_matches(|c| c == ' ' || is_mark(c));
    let (mut current, mut next, mut spaces) = (Ink::Plain, Ink::Plain, 0);
    for c in line.chars() {
        if let Some((ink, _)) = MARKED.iter().find(|(_, mark)| *mark == c) {
            next = *ink;
        } else if c == ' ' {
            spaces += 1;
        } else if c.width().unwrap_or(0) == 0 {
            out.push(c);
        } else {
            // Spaces belong to the look on both sides of them, or to none.
            if next != current && current != Ink::Plain {
                let _ = write!(out, "{}", current.style().render_reset());
            }
            out.extend(std::iter::repeat_n(' ', std::mem::take(&mut spaces)));
            if next != current && next != Ink::Plain {
                let _ = write!(out, "{}", next.style().render());
            }
            out.push(c);
            current = std::mem::replace(&mut next, Ink::Plain);
        }
    }
    if current != Ink::Plain {
        let _ = write!(out, "{}", current.style().render_reset());
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let mut out = String::new();
        push_line(&mut out, text);
        out
    }

    #[test]
    fn text_of_one_colour_has_one_escape_sequence() {
        assert_eq!(line(&format!("a  {}  b  ", Ink::Bad.mark("x y"))), "a  \x1b[1m\x1b[31mx y\x1b[0m  b\n");
        assert_eq!(line(&(Ink::Good.mark("o") + &Ink::Muted.mark("k"))), "\x1b[32mo\x1b[0m\x1b[2mk\x1b[0m\n");
        assert_eq!(line(&Ink::Strong.mark("e\u{301}!")), "\x1b[1me\u{301}!\x1b[0m\n");
        assert_eq!(line("  plain  "), "  plain\n");
    }
}
