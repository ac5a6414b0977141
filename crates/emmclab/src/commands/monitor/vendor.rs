//! The vendor's report of a live card: asked with a time limit, and not again if a question did not end.
//!
//! A known daemon's questions hang whole systems on some cards. So a file says that a question is outstanding; while it
//! exists, the card is not asked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use emmc_port::{CardData, SavedReport};
use emmc_report::visible;

use crate::cli::MoreArgs;
use crate::source;

/// Longer than a slow card takes for some blocks. Assumed.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Adds the report to the card's data; a sample without one is good too, so nothing here is an error.
pub(super) fn ask(card: &mut CardData, name: &str, state: &Path) {
    let marker = state.join(format!("vendor-health-{}.asked", name.rsplit('/').next().unwrap_or(name)));
    match question(card, name, &marker) {
        Ok(reports) if reports.is_empty() => say(name, "read commands alone give no vendor health of this card"),
        Ok(reports) => card.reports.extend(reports),
        Err(reason) => say(name, &format!("no vendor health in this sample: {reason}")),
    }
}

fn question(card: &CardData, name: &str, marker: &Path) -> Result<Vec<SavedReport>, String> {
    if marker.exists() {
        return Err(format!("an earlier question did not end; remove {} to ask again", marker.display()));
    }
    if emmc_linux::holds_root(card) {
        say(name, "asking the card of the root filesystem for its vendor health");
    }
    set(marker).map_err(|error| format!("{}: {error}; not asked", marker.display()))?;
    let (mut asked, name) = (CardData { kind: card.kind, cid: card.cid, ..CardData::default() }, name.to_owned());
    let (send, receive) = channel();
    // If the card never answers, the thread ends with the program, or the program waits for the kernel's time limit.
    std::thread::spawn(move || {
        let result = source::add_live_vendor(&mut asked, &name, &MoreArgs::default());
        let _ = send.send(result.map(|()| asked.reports).map_err(|error| format!("{error:#}")));
    });
    match receive.recv_timeout(TIME_LIMIT) {
        Ok(result) => {
            fs::remove_file(marker).map_err(|error| format!("{}: {error}", marker.display()))?;
            result
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(format!("no answer in {} s; it will not be asked again", TIME_LIMIT.as_secs()))
        }
    }
}

fn say(name: &str, what: &str) {
    eprintln!("emmclab: {}", visible(&format!("{name}: {what}")));
}

/// Creates the marker, and waits until it is on its disk: a hang may need a power cycle.
fn set(marker: &Path) -> std::io::Result<()> {
    let folder: PathBuf = marker.parent().map(Path::to_path_buf).unwrap_or_default();
    fs::create_dir_all(&folder)?;
    File::create_new(marker)?.sync_all()?;
    File::open(&folder)?.sync_all()
}
