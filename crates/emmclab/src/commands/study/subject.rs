//! The card that `study` studies: the named one, else piped input, else the only card of the machine.
//!
//! Absent on purpose: any other default; an example card never replaces the user's.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use anyhow::{Context, bail};
use emmc_port::CardData;
use emmc_port::saved::{SOURCE_BYTES_MAX, SavedSource};

use crate::cli::{MoreArgs, StudyArgs};
use crate::output::Output;
use crate::{pipe, shell, source};

/// The demonstration: a used virtual card.
#[cfg(feature = "sim")]
const DEMONSTRATION: &str = "sim:generic-8g@62%";

/// The demonstration of builds without virtual cards: the published EXT_CSD of a real part.
#[cfg(not(feature = "sim"))]
const DEMONSTRATION_DUMP: &[u8] = include_bytes!("../../../demonstration.ext_csd.hex");

/// The file to save piped input in, for commands that need it once more.
const PIPED: &str = "saved-input";

/// One card, and how to name it in a command.
pub(super) struct Subject {
    /// A device, a file, `sim:...` or `-`.
    pub(super) name: String,
    /// The same with its further options, quoted for a shell.
    pub(super) argument: String,
    /// What to do before a command with this argument can run: input from a pipe is gone.
    pub(super) before: Option<String>,
    pub(super) card: CardData,
}

impl Subject {
    fn new(name: String, more: &MoreArgs, card: CardData) -> Self {
        let mut before = None;
        let mut named = |file: &OsStr| {
            let is_input = file == "-";
            let redirected = if is_input { redirected() } else { Some(PathBuf::from(file)) };
            redirected.and_then(|path| shell::word(path.as_os_str())).unwrap_or_else(|| {
                let what = if is_input { "the input" } else { "a copy of the file" };
                before = Some(format!("first save {what} as {PIPED}"));
                PIPED.into()
            })
        };
        let mut words: Vec<String> = vec![named(OsStr::new(&name))];
        if let Some(root) = &more.tree.sysroot {
            words.splice(0..0, ["--sysroot".into(), named(root.as_os_str())]);
        }
        words.extend(more.with.iter().flat_map(|path| ["--with".into(), named(path.as_os_str())]));
        // FAMILY:ARG:FILE never begins with a dash.
        words.extend(
            more.vendor_reply
                .iter()
                .filter_map(|reply| shell::word(OsStr::new(reply)))
                .flat_map(|reply| ["--vendor-reply".into(), reply]),
        );
        Self { argument: words.join(" "), before, name, card }
    }
}

/// The file that standard input was redirected from, if it is one: `study < FILE`.
fn redirected() -> Option<PathBuf> {
    let path = std::fs::read_link("/proc/self/fd/0").ok()?;
    // The name of a removed file leads nowhere, that of a pipe is none.
    let input = std::io::stdin().as_fd().try_clone_to_owned().map(File::from).ok()?.metadata().ok()?;
    let named = std::fs::metadata(&path).ok()?;
    let is_same = (input.dev(), input.ino()) == (named.dev(), named.ino());
    (named.is_file() && is_same).then_some(path)
}

/// Finds and reads the card to study.
///
/// Errors: no card is named or piped in, and the machine has none or several; errors of the source.
pub(super) fn subject(args: &StudyArgs, output: &Output) -> anyhow::Result<Subject> {
    let mut subject = found(args, output)?;
    args.history.set_time(&mut subject.card)?;
    if args.live.vendor_health {
        source::add_live_vendor(&mut subject.card, &subject.name, &args.more)?;
    }
    Ok(subject)
}

fn found(args: &StudyArgs, output: &Output) -> anyhow::Result<Subject> {
    let more = &args.more;
    let is_piped = beside(args, output)?;
    if args.demo {
        return demonstration();
    }
    if let Some(name) = &args.source {
        return Ok(Subject::new(name.clone(), more, source::open_with(name, more)?));
    }
    if let (Some((first, rest)), None, false) = (more.with.split_first(), &more.tree.sysroot, is_piped) {
        let name = first.display().to_string();
        let rest = MoreArgs { with: rest.to_vec(), vendor_reply: more.vendor_reply.clone(), ..MoreArgs::default() };
        let card = source::open_with(&name, &rest)?;
        return Ok(Subject::new(name, &rest, card));
    }
    if let (None, Some(bytes)) = (&more.tree.sysroot, piped(output)?) {
        let mut card = SavedSource::new("-", bytes).read()?;
        source::add(&mut card, more)?;
        return Ok(Subject::new("-".into(), more, card));
    }
    let name = only_card(more.tree.sysroot.as_deref())?;
    let card = source::open_with(&name, more)?;
    Ok(Subject::new(name, more, card))
}

/// Standard input beside a named source: whether it holds a card, for which `--with` names more files.
///
/// It is only looked at, so that a loop over names (`while read card`) keeps its input.
///
/// Errors: it holds a card and another one is named.
fn beside(args: &StudyArgs, output: &Output) -> anyhow::Result<bool> {
    let more = &args.more;
    let named = if args.demo { Some("--demo") } else { args.source.as_deref() };
    let named = named.or(more.tree.sysroot.as_ref().map(|_| "--sysroot"));
    let is_read = named == Some("-") || more.with.iter().any(|path| path.as_os_str() == "-");
    if is_read || (named.is_none() && more.with.is_empty()) {
        return Ok(false);
    }
    let bytes = pipe::look_at_stdin();
    if bytes.is_empty() {
        return Ok(false);
    }
    let is_card = SavedSource::new("-", bytes).read().is_ok();
    match named {
        Some(named) if is_card => bail!(
            "standard input holds a card, and {named} is named too: leave one out, or join files of one card with `--with -`"
        ),
        None if is_card => Ok(true),
        _ => {
            output.error("standard input holds no card that can be read; it is left out, because a source is named");
            Ok(false)
        }
    }
}

#[cfg(feature = "sim")]
fn demonstration() -> anyhow::Result<Subject> {
    Ok(Subject::new(DEMONSTRATION.into(), &MoreArgs::default(), source::open_one(DEMONSTRATION, None)?))
}

#[cfg(not(feature = "sim"))]
fn demonstration() -> anyhow::Result<Subject> {
    let name = "EXAMPLE: samsung-klm-8g, the dump of a real 8 GB eMMC that ships with emmclab";
    let card = SavedSource::new(name, DEMONSTRATION_DUMP.to_vec()).read()?;
    Ok(Subject::new(name.into(), &MoreArgs::default(), card))
}

/// The one card of this machine, or of a copied /sys.
fn only_card(sysroot: Option<&Path>) -> anyhow::Result<String> {
    let cards = emmc_linux::list(sysroot)?.cards;
    let place = sysroot.map_or("this machine".into(), |folder| folder.display().to_string());
    let named = |card: &emmc_linux::ListedCard| {
        let words = [card.name.clone(), card.size_bytes.map(|size| size.rounded())];
        let words: Vec<String> = words.into_iter().flatten().collect();
        format!("{} ({})", card.device, words.join(", "))
    };
    match cards.as_slice() {
        [card] => Ok(card.device.clone()),
        [] => bail!(
            "which card? {place} has none: name a device or a saved file, or pipe one in; `emmclab study --demo` studies a \
             virtual card"
        ),
        several => {
            let names: Vec<String> = several.iter().map(named).collect();
            bail!("which card? {place} has {}: name one, e.g. emmclab study {}", names.join(" and "), several[0].device)
        }
    }
}

/// Piped or redirected standard input; `None` if it is a terminal, a device or empty.
fn piped(output: &Output) -> anyhow::Result<Option<Vec<u8>>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let copy = stdin.as_fd().try_clone_to_owned().map(File::from).context("standard input: cannot read")?;
    let kind = copy.metadata().context("standard input: cannot read")?.file_type();
    if !kind.is_file() && !kind.is_fifo() && !kind.is_socket() {
        return Ok(None);
    }
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = copy.take(SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
        // The receiver is gone only if this process is about to end.
        let _ = tell.send(read.map(|_| bytes));
    });
    let read = told.recv_timeout(pipe::SILENCE).or_else(|_| {
        if !output.is_json() {
            output.error("study reads standard input; to study a card of this machine, name it: `emmclab list`");
        }
        told.recv()
    });
    let bytes = read.context("standard input: cannot read")?.context("standard input: cannot read")?;
    Ok((!bytes.is_empty()).then_some(bytes))
}
