//! The card that `study` studies: the named one, else piped input, else the only card of the machine.
//!
//! Absent on purpose: any other default; an example card never replaces the user's.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};
use emmc_port::CardData;
use emmc_port::saved::{SOURCE_BYTES_MAX, SavedSource};

use crate::cli::{MoreArgs, StudyArgs};
use crate::output::Output;
use crate::source;

/// The demonstration: a used virtual card.
#[cfg(feature = "sim")]
const DEMONSTRATION: &str = "sim:generic-8g@62%";

/// The demonstration of builds without virtual cards: the published EXT_CSD of a real part.
#[cfg(not(feature = "sim"))]
const DEMONSTRATION_DUMP: &[u8] = include_bytes!("../../../demonstration.ext_csd.hex");

/// Time without input after which the user is told that standard input is read.
const SILENCE: Duration = Duration::from_secs(2);

/// One card, and how to name it in a command.
pub(super) struct Subject {
    /// A device, a file, `sim:...` or `-`.
    pub(super) name: String,
    /// The same with its further options, quoted for a shell.
    pub(super) argument: String,
    pub(super) card: CardData,
}

impl Subject {
    fn new(name: String, more: &MoreArgs, card: CardData) -> Self {
        let quoted = |text: &str| {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%=,".contains(letter);
            if !text.is_empty() && text.chars().all(is_plain) {
                text.to_owned()
            } else {
                format!("'{}'", text.replace('\'', r"'\''"))
            }
        };
        let mut words: Vec<String> = vec![quoted(&name)];
        if let Some(root) = &more.sysroot {
            words.splice(0..0, ["--sysroot".into(), quoted(&root.to_string_lossy())]);
        }
        words.extend(more.with.iter().flat_map(|path| ["--with".into(), quoted(&path.to_string_lossy())]));
        words.extend(more.vendor_reply.iter().flat_map(|reply| ["--vendor-reply".into(), quoted(reply)]));
        Self { argument: words.join(" "), name, card }
    }
}

/// Finds and reads the card to study.
///
/// Errors: no card is named or piped in, and the machine has none or several; errors of the source.
pub(super) fn subject(args: &StudyArgs, output: &Output) -> anyhow::Result<Subject> {
    let mut subject = found(args, output)?;
    if args.vendor_health {
        source::add_live_vendor(&mut subject.card, &subject.name, &args.more)?;
    }
    Ok(subject)
}

fn found(args: &StudyArgs, output: &Output) -> anyhow::Result<Subject> {
    let more = &args.more;
    if args.demo {
        return demonstration();
    }
    if let Some(name) = &args.source {
        return Ok(Subject::new(name.clone(), more, source::open_with(name, more)?));
    }
    if let (Some((first, rest)), None) = (more.with.split_first(), &more.sysroot) {
        let name = first.display().to_string();
        let rest = MoreArgs { with: rest.to_vec(), vendor_reply: more.vendor_reply.clone(), sysroot: None };
        let card = source::open_with(&name, &rest)?;
        return Ok(Subject::new(name, &rest, card));
    }
    if let (None, Some(bytes)) = (&more.sysroot, piped(output)?) {
        let mut card = SavedSource::new("-", bytes).read()?;
        source::add(&mut card, more)?;
        return Ok(Subject::new("-".into(), more, card));
    }
    let name = only_card(more.sysroot.as_deref())?;
    let card = source::open_with(&name, more)?;
    Ok(Subject::new(name, more, card))
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
    let read = told.recv_timeout(SILENCE).or_else(|_| {
        if !output.is_json() {
            output.error("study reads standard input; to study a card of this machine, name it: `emmclab list`");
        }
        told.recv()
    });
    let bytes = read.context("standard input: cannot read")?.context("standard input: cannot read")?;
    Ok((!bytes.is_empty()).then_some(bytes))
}
