//! `-o`: where a report is saved, and in which form.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

/// Where a report is saved.
#[derive(Args, Debug, Default)]
pub(crate) struct SaveArgs {
    /// Save the report to this file: JSON for .json, a self-contained page for .html; - for standard output
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// What a saved report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SavedForm {
    /// What `--json` prints.
    Json,
    /// One self-contained page.
    #[cfg(feature = "html")]
    Html,
}

impl SavedForm {
    /// The form by the ending of the file's name; other endings give the usual form of the command.
    pub(crate) fn of(path: &Path, usual: Self) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Self::Json,
            #[cfg(feature = "html")]
            Some("html" | "htm") => Self::Html,
            _ => usual,
        }
    }
}

#[cfg(all(test, feature = "html"))]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_the_format() {
        let of = |name: &str, usual| SavedForm::of(Path::new(name), usual);
        assert_eq!((of("a.json", SavedForm::Html), of("a.html", SavedForm::Json)), (SavedForm::Json, SavedForm::Html));
        assert_eq!((of("a", SavedForm::Html), of("-", SavedForm::Json)), (SavedForm::Html, SavedForm::Json));
    }
}
