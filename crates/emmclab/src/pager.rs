//! Shows long text in the user's pager, as git does.
//!
//! Absent on purpose: paging of JSON, of lines for scripts, and of output that does not go to a terminal.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

/// The default pager: quits if the text fits, keeps colours, leaves the text on the screen.
const USUAL: &str = "less";
/// Its options, unless the user set some.
const USUAL_OPTIONS: (&str, &str) = ("LESS", "FRX");

/// Shows the text in a pager; returns whether a pager ran.
///
/// Text that fits on the screen is not paged, nor any text if `PAGER` is empty or `cat`.
pub(crate) fn page(text: &str, rows: Option<usize>) -> bool {
    if rows.is_none_or(|rows| text.lines().count() < rows) {
        return false;
    }
    let named = std::env::var_os("PAGER");
    match pager(named.as_ref()) {
        Some(pager) => shown(&pager, text),
        None => false,
    }
}

/// The pager to run, if one is wanted.
fn pager(named: Option<&OsString>) -> Option<OsString> {
    match named {
        Some(named) if named.is_empty() || named == "cat" => None,
        Some(named) => Some(named.clone()),
        None => Some(USUAL.into()),
    }
}

fn shown(pager: &OsString, text: &str) -> bool {
    // Parsed by a shell: `PAGER="less -S"` has options.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os(USUAL_OPTIONS.0).is_none() {
        command.env(USUAL_OPTIONS.0, USUAL_OPTIONS.1);
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut pipe) = child.stdin.take() {
        // The user may quit before the end: that is no error.
        let _ = pipe.write_all(text.as_bytes());
    }
    // 127 means that the shell did not find the program; the text must still be printed.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pager_and_cat_are_no_pager() {
        let chosen = |name: &str| pager(Some(&OsString::from(name)));
        assert_eq!(chosen(""), None);
        assert_eq!(chosen("cat"), None);
        assert_eq!(chosen("less -S"), Some("less -S".into()));
        assert_eq!(pager(None), Some("less".into()));
    }

    #[test]
    fn text_that_fits_the_screen_is_not_paged() {
        assert!(!page("one\ntwo\n", Some(24)));
        assert!(!page("one\n", None));
    }
}
