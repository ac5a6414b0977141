//! Standard output and standard error: text or JSON, coloured or not.

use std::io::{IsTerminal, Write};
#[cfg(feature = "html")]
use std::path::Path;

use anyhow::{Context, bail};
use clap::ColorChoice;
use emmc_report::{Document, TextOptions, text, visible};
use emmc_units::printable_json;
use serde::Serialize;

#[cfg(feature = "html")]
use crate::cli::SavedForm;
use crate::pager;

/// Columns of text if standard output is not a terminal.
const WIDTH_PIPED: usize = 100;

/// Where and how a command prints.
pub(crate) struct Output {
    json: bool,
    color: ColorChoice,
    is_paged: bool,
}

/// The HTML page that the user requested.
#[cfg(any(feature = "html", feature = "sim"))]
#[derive(Default)]
pub(crate) struct Page<'a> {
    /// Its file; `-` is standard output; `None` if no page is requested.
    #[cfg(feature = "html")]
    pub(crate) path: Option<&'a Path>,
    /// Whether an existing file may be replaced.
    #[cfg(feature = "html")]
    pub(crate) force: bool,
    /// Files that were read and must not be overwritten.
    #[cfg(feature = "html")]
    pub(crate) inputs: Vec<&'a Path>,
    #[cfg(not(feature = "html"))]
    none: std::marker::PhantomData<&'a ()>,
}

/// The first keys of every JSON document.
#[derive(Serialize)]
struct Envelope<'a, T: Serialize> {
    schema: &'static str,
    tool: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

/// The error document, printed to standard error with `--json`.
#[derive(Serialize)]
struct ErrorDocument<'a> {
    schema: &'static str,
    error: &'a str,
}

impl Output {
    pub(crate) fn new(json: bool, color: ColorChoice) -> Self {
        Self { json, color, is_paged: false }
    }

    /// Whether long text goes through a pager if standard output is a terminal.
    pub(crate) fn paged(self, is_paged: bool) -> Self {
        Self { is_paged, ..self }
    }

    /// Whether JSON was requested.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// When text is coloured.
    pub(crate) fn color(&self) -> ColorChoice {
        self.color
    }

    /// Prints `body` as JSON, or the document that `present` makes of it as text.
    pub(crate) fn print<T: Serialize>(
        &mut self,
        schema: &'static str,
        body: &T,
        present: impl FnOnce(&T) -> Document,
    ) -> anyhow::Result<()> {
        if self.json { self.line(&json(schema, body)?) } else { self.document(&present(body)) }
    }

    #[cfg(any(feature = "html", feature = "sim"))]
    /// Saves `body` as a page or as JSON if requested, and prints it as JSON or text if that is still due: JSON is
    /// printed in addition to a page in a file, and instead of a page on standard output.
    pub(crate) fn report<T: Serialize>(
        &mut self,
        schema: &'static str,
        body: &T,
        page: &Page<'_>,
        present: impl Fn(&T) -> Document,
    ) -> anyhow::Result<()> {
        #[cfg(feature = "html")]
        if let Some(path) = page.path.filter(|path| !(self.json && *path == Path::new("-"))) {
            let content = match SavedForm::of(path, SavedForm::Html) {
                SavedForm::Json => json(schema, body)? + "\n",
                SavedForm::Html => html(&present(body)),
            };
            let is_file = crate::save::deliver(self, path, &content, page.force, &page.inputs)?;
            if is_file && !self.json {
                self.said(&format!("{}: written", path.display()))?;
            }
            if !(is_file && self.json) {
                return Ok(());
            }
        }
        #[cfg(not(feature = "html"))]
        let Page { none: _ } = page;
        self.print(schema, body, present)
    }

    /// Prints a document as text.
    pub(crate) fn document(&mut self, document: &Document) -> anyhow::Result<()> {
        let stdout = std::io::stdout();
        let options = TextOptions { width: width(), colour: self.colour(&stdout), unicode: unicode() };
        let text = text(document, &options);
        if self.is_paged && stdout.is_terminal() && pager::page(&text, emmc_linux::terminal_rows()) {
            return Ok(());
        }
        self.write(&text)
    }

    /// Prints one line that may quote a name.
    pub(crate) fn said(&mut self, line: &str) -> anyhow::Result<()> {
        self.line(&visible(line))
    }

    /// Prints one line unchanged.
    pub(crate) fn line(&mut self, line: &str) -> anyhow::Result<()> {
        self.write(&format!("{line}\n"))
    }

    /// Prints text unchanged.
    pub(crate) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        if emmc_linux::stdout_was_closed() {
            // Rust has opened /dev/null in its place, where everything would be lost without an error.
            bail!("standard output is closed: nothing can be printed");
        }
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("standard output: cannot write")
    }

    /// Prints the help that clap made, in colour if that is wanted.
    pub(crate) fn help(&mut self, help: &clap::Error) -> anyhow::Result<()> {
        if emmc_linux::stdout_was_closed() {
            return self.write("");
        }
        help.print().context("standard output: cannot write")
    }

    /// Prints a line below an error, for people only.
    pub(crate) fn hint(&self, hint: &str) {
        // If standard error is closed, nobody reads the hint.
        let _ = writeln!(std::io::stderr(), "  {}", visible(hint));
    }

    /// Prints one line to standard error; with `--json` one object.
    pub(crate) fn error(&self, message: &str) {
        let line = if self.json {
            // Writing a string as JSON cannot fail.
            let document = ErrorDocument { schema: "emmclab.error/1", error: message };
            printable_json(serde_json::to_string(&document).unwrap_or_default())
        } else {
            // A message may quote content of a card or a file, which must not control the terminal.
            format!("emmclab: {}", visible(message))
        };
        // If standard error is closed, nobody reads the message.
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    fn colour(&self, stdout: &std::io::Stdout) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => anstream::AutoStream::choice(stdout) != anstream::ColorChoice::Never,
        }
    }
}

/// One self-contained page.
#[cfg(feature = "html")]
pub(crate) fn html(document: &Document) -> String {
    let generated_by = concat!("emmclab ", env!("CARGO_PKG_VERSION")).into();
    emmc_report::html(document, &emmc_report::HtmlOptions { generated_by })
}

/// One JSON document, its `schema` key first.
pub(crate) fn json<T: Serialize>(schema: &'static str, body: &T) -> anyhow::Result<String> {
    let tool = concat!("emmclab ", env!("CARGO_PKG_VERSION"));
    let text = serde_json::to_string_pretty(&Envelope { schema, tool, body }).context("cannot write JSON")?;
    Ok(printable_json(text))
}

fn width() -> usize {
    if !std::io::stdout().is_terminal() {
        // As in other tools: COLUMNS sets the width of a piped report.
        let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
        return asked.map_or(WIDTH_PIPED, |columns| columns.clamp(40, 160));
    }
    emmc_linux::terminal_columns().map_or(WIDTH_PIPED, |columns| columns.clamp(40, 160))
}

/// Whether the locale can show more than ASCII.
fn unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
