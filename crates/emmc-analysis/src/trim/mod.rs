//! Whether a card learns which data was deleted: what it can, what the kernel sends, which layer stops it, who starts
//! it.
//!
//! A function of registers, the stack of block devices, and what a test showed. Absent on purpose: reading or trimming
//! anything.

mod findings;
mod kernel;
mod lines;
#[cfg(test)]
pub(crate) mod tests;

use emmc_port::{CardData, Layer, LayerKind, Stack};
use serde::Serialize;

use crate::finding::{Finding, Severity};
pub use kernel::{Defect, KernelCommand, KnownBad, kernel_command, known_bad};
pub use lines::{AdvisedFile, FstabChange, TrimAdvice, trim_advice};

/// Filesystems whose Linux driver has no FITRIM.
///
/// Source: Linux `fs/*/ioctl.c`, `fs/*/file.c`: no case FITRIM there.
const WITHOUT_TRIM: [&str; 6] = ["ext2", "minix", "reiserfs", "hfs", "hpfs", "affs"];

/// What a test of the card itself has shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Obedience {
    /// Whether a discard has an effect; absent if the test could not show it.
    pub obeys: Option<bool>,
    /// What was tested: `probe`, or a file on the card.
    pub tested: String,
    /// What was seen, with its figures.
    pub seen: String,
}

/// One filesystem or swap space, and the way of its discards to the card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reach {
    /// The top layer's kernel name.
    pub layer: String,
    /// Where it is mounted.
    pub mounted_at: Option<String>,
    /// Its filesystem.
    pub fstype: Option<String>,
    /// The layers from the top down to the disk, by name.
    pub path: Vec<String>,
    /// The lowest layer that stops discards, though the one below it accepts them; `filesystem` if it is that.
    pub blocked_by: Option<String>,
    /// Who starts trims: `mount option`, `fstrim.timer`, `cron`; empty: nobody.
    pub trimmed_by: Vec<String>,
    /// Whether discards reach the card, as far as the limits of all layers show.
    pub reaches: Option<bool>,
}

/// What is known of trims of one card.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrimStatus {
    /// The answer in one sentence.
    pub verdict: String,
    /// The worst severity among the findings.
    pub severity: Severity,
    /// What Linux sends to this card; absent if its registers do not say.
    pub command: Option<KernelCommand>,
    /// What Linux knows of this part.
    pub known_bad: Vec<KnownBad>,
    /// Whether the card obeys, if that was tested.
    pub obedience: Option<Obedience>,
    /// Each filesystem and swap space.
    pub reach: Vec<Reach>,
    /// What to know or decide, worst first.
    pub findings: Vec<Finding>,
    /// The layers, and who trims.
    #[serde(flatten)]
    pub stack: Stack,
}

/// Judges a card and the stack above it. `card` is absent for a disk that is none.
///
/// `now`: the time at which the stack was read, to judge how old the last trim is.
pub fn trim_status(
    card: Option<&CardData>,
    stack: Stack,
    obedience: Option<Obedience>,
    now: Option<jiff::Timestamp>,
) -> TrimStatus {
    let command = card.and_then(kernel_command);
    let known_bad = card.map(known_bad).unwrap_or_default();
    let tops = stack.layers.iter().filter(|layer| layer.mounted.is_some() || layer.is_swap);
    let reach: Vec<Reach> = tops.map(|top| reach(&stack, top)).collect();
    let mut status = TrimStatus {
        verdict: String::new(),
        severity: Severity::Good,
        command,
        known_bad,
        obedience,
        reach,
        findings: Vec::new(),
        stack,
    };
    status.findings = findings::findings(&status, now);
    status.severity = status.findings.first().map_or(Severity::Unknown, |finding| finding.severity);
    status.verdict = status.findings.first().map_or_else(
        || "No filesystem of this disk is mounted, and nothing speaks against discards".into(),
        |finding| finding.what.clone(),
    );
    status
}

fn reach(stack: &Stack, top: &Layer) -> Reach {
    let path = stack.path(top);
    let is_ro = top.mounted.as_ref().is_some_and(|mounted| mounted.options.iter().any(|option| option == "ro"));
    let fstype = top.mounted.as_ref().map(|mounted| mounted.fstype.clone());
    // The lowest layer without discards above one with them: what is above it can only follow.
    let limits = path.iter().rev().map(|layer| (layer, layer.discard_max_bytes));
    let mut below = None;
    let mut blocked = None;
    for (layer, limit) in limits {
        if limit == Some(0) && (below.is_none() || below.is_some_and(|bytes| bytes > 0)) {
            blocked = Some(layer.name.clone());
            break;
        }
        below = limit.or(below);
    }
    let cannot = fstype.as_deref().is_some_and(|fstype| WITHOUT_TRIM.contains(&fstype));
    if blocked.is_none() && cannot {
        blocked = Some("filesystem".into());
    }
    let all_known = path.iter().all(|layer| layer.discard_max_bytes.is_some());
    let reaches = if blocked.is_some() { Some(false) } else { all_known.then_some(true) };
    Reach {
        layer: top.name.clone(),
        mounted_at: top.mounted.as_ref().map(|mounted| mounted.point.clone()),
        path: path.iter().map(|layer| layer.name.clone()).collect(),
        blocked_by: blocked,
        trimmed_by: if is_ro { Vec::new() } else { trimmed_by(stack, top) },
        fstype,
        reaches,
    }
}

fn trimmed_by(stack: &Stack, top: &Layer) -> Vec<String> {
    let mut who = Vec::new();
    let Some(mounted) = &top.mounted else { return who };
    if mounted.options.iter().any(|option| option == "discard" || option.starts_with("discard=")) {
        who.push("mount option".into());
    }
    // The timer runs `fstrim --listed-in /etc/fstab:/proc/self/mountinfo`: where fstab has lines, only what it names.
    let others = stack.layers.iter().filter_map(|layer| layer.mounted.as_ref());
    let is_passed_over = mounted.fstab_options.is_none() && others.clone().any(|other| other.fstab_options.is_some());
    if stack.services.fstrim_timer == Some(true) && !is_passed_over {
        who.push("fstrim.timer".into());
    }
    if !stack.services.cron.is_empty() {
        who.push("cron".into());
    }
    who
}

/// A layer in words: `dm-0 (secret, dm-crypt)`.
pub(crate) fn named(layer: &Layer) -> String {
    let kind = match layer.kind {
        LayerKind::Disk => "the disk",
        LayerKind::Partition => "partition",
        LayerKind::Crypt => "dm-crypt",
        LayerKind::Lvm => "LVM",
        LayerKind::Raid => "RAID",
        LayerKind::Loop => "loop device",
        LayerKind::Mapper => "device mapper",
        LayerKind::Other => return layer.name.clone(),
    };
    match &layer.mapped_name {
        Some(name) => format!("{} ({name}, {kind})", layer.name),
        None => format!("{} ({kind})", layer.name),
    }
}
