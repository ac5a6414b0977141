//! What to know or decide, from a status without findings.

use emmc_port::{Layer, LayerKind};

use super::{Defect, Reach, TrimStatus, named};
use crate::finding::{self, Finding, Severity};

/// The timer runs weekly; twice that without a run is a timer that does not run. Unit: s.
const STALE_S: i64 = 15 * 86_400;
/// Less written since the boot says nothing about trims. Unit: bytes.
const WRITTEN_BYTES: u64 = 64 << 20;

pub(super) fn findings(status: &TrimStatus, now: Option<jiff::Timestamp>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(card(status));
    all.extend(known_bad(status));
    all.extend(host(status));
    let disk_is_off = all.iter().any(|finding: &Finding| finding.id == "trim-host-off");
    for reach in &status.reach {
        all.extend(blocked(status, reach).filter(|_| !disk_is_off));
        all.extend(nobody(status, reach));
    }
    all.extend(obedience(status));
    all.extend(stale(status, now));
    all.extend(unaligned(status));
    all.extend(after_the_next_boot(status));
    all.extend(lvm(status));
    let is_bad = |finding: &Finding| finding.severity < Severity::Notice;
    if !all.iter().any(is_bad) && status.reach.iter().any(|reach| reach.reaches == Some(true)) {
        all.push(good(status));
    }
    if all.is_empty() && !status.reach.is_empty() {
        let what = "This source does not say which discards the kernel accepts";
        all.push(Finding::new(Severity::Unknown, "trim-unknown", what).evidence("no queue/discard_max_bytes in it"));
    }
    finding::sort(&mut all);
    all
}

fn card(status: &TrimStatus) -> Option<Finding> {
    let command = status.command.as_ref()?;
    match command.name {
        "none" => Some(
            Finding::new(Severity::Warning, "trim-no-command", "The card has no command that frees deleted data")
                .evidence(&command.why)
                .advice("leave some space unpartitioned from the start: the card uses it as spare space"),
        ),
        "erase" => {
            let what = "The kernel sends ERASE: a card that knows neither discard nor trim may drop smaller ranges";
            Some(
                Finding::new(Severity::Notice, "trim-by-erase", what)
                    .evidence(&command.why)
                    .evidence(command.unaligned),
            )
        }
        _ => None,
    }
}

fn known_bad(status: &TrimStatus) -> Vec<Finding> {
    let disk_discards = status.stack.layers.first().and_then(|disk| disk.discard_max_bytes).is_some_and(|max| max > 0);
    let finding = |bad: &super::KnownBad| {
        let part = bad.product.map_or_else(|| "this maker's cards".to_owned(), |name| format!("the part {name}"));
        let what = format!("Linux knows {part} as bad: {}", bad.what);
        let severity = match bad.defect {
            // A discard is another command than the one that is broken.
            Defect::Trim if disk_discards => Severity::Warning,
            Defect::Trim | Defect::Secure | Defect::Discard | Defect::Argument => Severity::Notice,
        };
        Finding::new(severity, "trim-known-bad", what)
            .evidence(format!("{} ({})", bad.quirk, bad.source))
            .advice("check that the kernel in use has this entry: an older one sends the command")
            .source(bad.source)
    };
    status.known_bad.iter().map(finding).collect()
}

/// The kernel sends nothing although the card can.
fn host(status: &TrimStatus) -> Option<Finding> {
    let disk = status.stack.layers.first().filter(|disk| disk.discard_max_bytes == Some(0))?;
    if status.command.as_ref().is_some_and(|command| command.name == "none") {
        return None;
    }
    let what = format!("The kernel sends no discard to {}", disk.name);
    let finding = Finding::new(Severity::Warning, "trim-host-off", what)
        .evidence(format!("/sys/block/{}/queue/discard_max_bytes = 0", disk.name));
    Some(match disk.discard_max_hw_bytes.filter(|bytes| *bytes > 0) {
        Some(bytes) => finding
            .evidence(format!("discard_max_hw_bytes = {bytes}: somebody has switched it off"))
            .command(format!("echo {bytes} > /sys/block/{}/queue/discard_max_bytes", disk.name), "until the next boot")
            .advice("look for a udev rule or a script that writes 0 to it"),
        None => finding.advice(
            "the host's busy timeout is shorter than one erase group of this card takes, or the driver lacks \
             MMC_CAP_ERASE (before Linux 5.10)",
        ),
    })
}

fn blocked(status: &TrimStatus, reach: &Reach) -> Option<Finding> {
    let by = reach.blocked_by.as_ref()?;
    let place = reach.mounted_at.clone().unwrap_or_else(|| format!("swap on {}", reach.layer));
    let path = reach.path.join(" on ");
    if by == "filesystem" {
        let fstype = reach.fstype.clone().unwrap_or_default();
        let what = format!("{place} never discards: {fstype} has no trim in Linux");
        let finding = Finding::new(Severity::Warning, "trim-filesystem", what).evidence(path);
        return Some(match fstype.as_str() {
            "ext2" => finding.advice("mount it as ext4, whose driver trims it, or make it ext4"),
            _ => finding.advice("keep data that changes on ext4 or f2fs"),
        });
    }
    let layer = status.stack.layer(by)?;
    let below = layer.below.first().and_then(|name| status.stack.layer(name));
    let what = format!("{} stops the discards of {place}", named(layer));
    let accepted = below.and_then(|below| Some(format!("{} accepts {}", below.name, below.discard_max_bytes?)));
    let mut finding =
        Finding::new(Severity::Warning, "trim-blocked", what).evidence(format!("the way: {path}")).evidence(format!(
            "{}/queue/discard_max_bytes = 0{}",
            layer.name,
            accepted.map_or(String::new(), |text| format!("; {text}"))
        ));
    if let Some(lifetime) =
        status.stack.layer(&reach.layer).and_then(|top| top.mounted.as_ref()?.lifetime_written_bytes)
    {
        finding = finding.evidence(format!("written since the filesystem was made: {}", size(lifetime)));
    }
    let is_below_open = below.and_then(|below| below.discard_max_bytes).is_some_and(|most| most > 0);
    Some(passes(finding, layer, is_below_open))
}

/// How to let a layer pass discards on; `is_below_open`: the one below accepts them.
fn passes(finding: Finding, layer: &Layer, is_below_open: bool) -> Finding {
    let name = layer.mapped_name.clone().unwrap_or_else(|| layer.name.clone());
    match layer.kind {
        LayerKind::Lvm if is_below_open => finding
            .command(
                format!("dmsetup table {name} | dmsetup load {name} && dmsetup resume {name}"),
                "its limits are those of the time when it was activated; its own table, loaded again, takes those of \
                 today, also while it is mounted; `lvchange --refresh` does not",
            )
            .advice(
                "linear and striped volumes pass discards on then, as they do after the next boot; snapshots do not; \
                 of a thin volume look for `ignore_discard` of its pool",
            ),
        LayerKind::Crypt => finding
            .command(
                format!("cryptsetup refresh --allow-discards --persistent {name}"),
                "now and, with LUKS2, at each opening; of LUKS1 write `discard` into /etc/crypttab",
            )
            .advice("free areas then show as such below the encryption: how full it is, and perhaps which filesystem")
            .source("cryptsetup(8), --allow-discards"),
        LayerKind::Lvm | LayerKind::Mapper => {
            finding.command(format!("dmsetup table {name}"), "the targets and their options").advice(
                "linear and striped pass discards on; snapshots do not; of a thin volume look for \
                 `ignore_discard` of its pool; dm-crypt needs `allow_discards`",
            )
        }
        LayerKind::Raid => finding
            .command("cat /sys/module/raid456/parameters/devices_handle_discard_safely", "for RAID 4, 5 and 6")
            .advice("RAID 0, 1 and 10 pass discards on if all members do"),
        LayerKind::Loop => finding
            .command(format!("losetup --list --output NAME,BACK-FILE,RO /dev/{}", layer.name), "what is behind it")
            .advice(
                "a loop device punches holes into its file: the filesystem below must support that (ext4, f2fs, xfs)",
            ),
        LayerKind::Disk | LayerKind::Partition | LayerKind::Other => finding,
    }
}

fn nobody(status: &TrimStatus, reach: &Reach) -> Option<Finding> {
    let point = reach.mounted_at.as_ref()?;
    let top = status.stack.layer(&reach.layer)?;
    let is_ro = top.mounted.as_ref()?.options.iter().any(|option| option == "ro");
    if !reach.trimmed_by.is_empty() || is_ro || reach.blocked_by.is_some() {
        return None;
    }
    let services = &status.stack.services;
    let what = format!("Nobody trims {point}: the card keeps what was deleted there");
    let timer = match services.fstrim_timer {
        Some(true) => "fstrim.timer trims only what /etc/fstab names, and this is not there",
        Some(false) => "fstrim.timer is not enabled",
        _ => "no fstrim.timer was found",
    };
    let mut finding = Finding::new(Severity::Warning, "trim-nobody", what)
        .evidence(format!("mounted without `discard`; {timer}; no cron job runs fstrim"));
    if let (Some(written), Some(0)) = (top.written_bytes, top.discarded_bytes) {
        if written >= WRITTEN_BYTES {
            finding = finding.evidence(format!("since the boot: {} written, nothing discarded", size(written)));
        }
    }
    finding = match &services.fstrim_last_run {
        Some(last) => finding.evidence(format!("the timer last ran at {last}")),
        None => finding,
    };
    Some(
        finding
            .command(format!("emmclab trim run {point}"), "trims it now, with progress")
            .command(format!("emmclab trim advise {point}"), "the timer or the fstab line that keeps it so"),
    )
}

fn obedience(status: &TrimStatus) -> Option<Finding> {
    let tested = status.obedience.as_ref()?;
    let evidence = format!("{}: {}", tested.tested, tested.seen);
    Some(match tested.obeys {
        Some(false) => {
            let what = "The card accepts discards and ignores them: trimming does not make it faster";
            Finding::new(Severity::Warning, "trim-ignored", what)
                .evidence(evidence)
                .advice("leave space unpartitioned from the start, or take another part: `emmclab advise part`")
        }
        Some(true) => {
            Finding::new(Severity::Good, "trim-obeyed", "The card obeys: discarded data is gone").evidence(evidence)
        }
        None => Finding::new(Severity::Unknown, "trim-untold", "The test does not show whether the card obeys")
            .evidence(evidence),
    })
}

fn stale(status: &TrimStatus, now: Option<jiff::Timestamp>) -> Option<Finding> {
    let services = &status.stack.services;
    if services.fstrim_timer != Some(true) {
        return None;
    }
    let last: jiff::Timestamp = services.fstrim_last_run.as_ref()?.parse().ok()?;
    let age_s = now?.as_second() - last.as_second();
    (age_s > STALE_S).then(|| {
        let what = format!("fstrim.timer is enabled and last ran {} days ago", age_s / 86_400);
        Finding::new(Severity::Warning, "trim-timer-stale", what)
            .evidence(format!("/var/lib/systemd/timers/stamp-fstrim.timer: {last}"))
            .command("systemctl list-timers fstrim.timer", "when it runs next")
            .command("journalctl -u fstrim.service", "how its last runs ended")
    })
}

fn unaligned(status: &TrimStatus) -> Vec<Finding> {
    let finding = |layer: &Layer| {
        let granularity = layer.discard_granularity_bytes.filter(|bytes| *bytes > 512)?;
        let start = layer.start_sectors?.checked_mul(512)?;
        let rest = start % granularity;
        (rest != 0).then(|| {
            let what = format!(
                "{} begins {} after a boundary of the discard granularity: its first and last unit are never whole",
                layer.name,
                size(rest)
            );
            Finding::new(Severity::Notice, "trim-unaligned", what)
                .evidence(format!("start {} sectors, discard_granularity {granularity}", start / 512))
                .command("emmclab advise layout", "lines for partitions that fit this card")
        })
    };
    status.stack.layers.iter().filter_map(finding).collect()
}

/// What works now, or does not, and changes when the mapping is opened again.
fn after_the_next_boot(status: &TrimStatus) -> Vec<Finding> {
    let services = &status.stack.services;
    let crypts = status.stack.layers.iter().filter(|layer| layer.kind == LayerKind::Crypt);
    let finding = |layer: &Layer| {
        let name = layer.mapped_name.as_ref()?;
        let is_listed = services.crypttab.contains(name);
        let will = services.crypttab_discard.contains(name);
        let does = layer.discard_max_bytes? > 0;
        (is_listed && will && !does).then(|| {
            let what = format!("{name} has `discard` in /etc/crypttab and is open without it");
            Finding::new(Severity::Notice, "trim-crypttab", what)
                .command(format!("cryptsetup refresh --allow-discards {name}"), "without a reboot")
        })
    };
    crypts.filter_map(finding).collect()
}

fn lvm(status: &TrimStatus) -> Option<Finding> {
    let has_lvm = status.stack.layers.iter().any(|layer| layer.kind == LayerKind::Lvm);
    (has_lvm && status.stack.services.lvm_issue_discards == Some(false)).then(|| {
        let what = "LVM does not discard a volume that is removed or made smaller";
        Finding::new(Severity::Notice, "trim-lvm", what)
            .evidence("/etc/lvm/lvm.conf: issue_discards = 0")
            .advice("it has no effect on fstrim; a removed volume cannot be restored by `vgcfgrestore` with it on")
    })
}

fn good(status: &TrimStatus) -> Finding {
    let reached: Vec<String> = status
        .reach
        .iter()
        .filter(|reach| reach.reaches == Some(true))
        .filter_map(|reach| reach.mounted_at.clone())
        .collect();
    let by = status
        .reach
        .iter()
        .flat_map(|reach| reach.trimmed_by.iter().cloned())
        .collect::<std::collections::BTreeSet<_>>();
    let by: Vec<String> = by.into_iter().collect();
    let command =
        status.command.as_ref().map_or(String::new(), |command| format!(" as {}", command.name.to_uppercase()));
    let what = format!("Discards of {} reach the card{command}", reached.join(", "));
    Finding::new(Severity::Good, "trim-good", what).evidence(format!("started by: {}", by.join(", ")))
}

/// A size, exact where it is a round number.
pub(super) fn size(bytes: u64) -> String {
    emmc_units::Bytes(bytes).rounded()
}
