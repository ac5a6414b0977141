//! Functions of a controller's driver as events (fprobe), which the kernel has once for all instances.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use super::INSTANCE;

/// The function that writes a command of SDHCI, and the event of its return, named as the kernel does it.
const WRITES: &str = "sdhci_send_command";

/// A recorder's event.
pub(super) fn event(process: u32) -> String {
    format!("{INSTANCE}{process}/{WRITES}__exit").replace('-', "_")
}

/// Defines it; whether the kernel has the function, and events of functions at all.
pub(super) fn define(root: &Path, process: u32) -> bool {
    change(root, &format!("f:{} {WRITES}%return", event(process)))
}

/// Removes it. No instance may use it any more.
pub(super) fn remove(root: &Path, process: u32) {
    change(root, &format!("-:{}", event(process)));
}

/// Removes those of recorders that were killed.
pub(super) fn remove_abandoned(root: &Path) {
    let all = fs::read_to_string(root.join("dynamic_events")).unwrap_or_default();
    let prefix = INSTANCE.replace('-', "_");
    for line in all.lines() {
        let process = line.strip_prefix("f:").and_then(|line| line.strip_prefix(&prefix)).and_then(|line| {
            let (process, name) = line.split_once('/')?;
            name.starts_with(WRITES).then(|| process.parse::<u32>().ok())?
        });
        if let Some(process) = process.filter(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            remove(root, process);
        }
    }
}

/// Adds a line to the kernel's list: it replaces nothing.
fn change(root: &Path, line: &str) -> bool {
    let file = File::options().append(true).open(root.join("dynamic_events"));
    file.and_then(|mut file| file.write_all(line.as_bytes())).is_ok()
}
