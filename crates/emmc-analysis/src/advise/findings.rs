//! The rules.
//!
//! Source: Linux `Documentation/admin-guide/{ext4.rst,sysctl/vm.rst}`, `Documentation/block/bfq-iosched.rst`, mount(8),
//! journald.conf(5), btrfs(5), xfs(5), dockerd(8).

use emmc_port::{Containers, Layer, LayerKind, MountedOn, SystemUse, Writer};
use emmc_regs::CardKind;
use emmc_regs::ssr::Ssr;

use super::{AdviseFacts, DAY_S, ENGINES, JOURNALD, LOGGERS, bytes};
use crate::finding::{Finding, Severity};
use crate::study::{StudyOptions, study};
use crate::trim::trim_status;

/// A process with less of what was written is not named. Unit: 1.
const SHARE_NAMED: f64 = 0.1;
/// Settings of the card that `study` judges and that matter to a running system.
const OF_STUDY: [&str; 5] =
    ["command-queue-off", "bus-slower-than-offered", "bus-narrow", "stalls", "user-area-protection"];

type Found = (Finding, Option<f64>);

/// Findings, each with the bytes a day that following it would save, where that was measured.
pub(super) fn findings(facts: &AdviseFacts, per_day: Option<f64>) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    all.extend(swap(facts));
    let mounted = facts.stack.layers.iter().filter_map(|layer| Some((layer, layer.mounted.as_ref()?)));
    for (layer, mounted) in mounted {
        all.extend(mount(layer, mounted).into_iter().map(|finding| (finding, None)));
    }
    all.extend(logs(facts));
    all.extend(facts.system.containers.iter().filter_map(|of| containers(facts, of)));
    all.extend(temporary(facts).map(|finding| (finding, None)));
    all.extend(scheduler(facts.system).map(|finding| (finding, None)));
    all.extend(alignment(facts).into_iter().map(|finding| (finding, None)));
    all.extend(writers(facts, per_day));
    let trim = trim_status(facts.card, facts.stack.clone(), None, facts.now);
    let matters = |finding: &Finding| finding.severity <= Severity::Notice;
    all.extend(trim.findings.into_iter().filter(matters).map(|finding| (finding, None)));
    if let Some(card) = facts.card {
        let of_card = study(card, &StudyOptions::default()).findings.into_iter();
        let of_card = of_card.filter(|finding| matters(finding) && OF_STUDY.contains(&finding.id));
        all.extend(of_card.map(|finding| (finding, None)));
    }
    all
}

/// Where a mount lies on the card.
fn on_card<'a>(facts: &AdviseFacts<'a>, point: &str) -> Option<&'a MountedOn> {
    let mounts = facts.stack.layers.iter().filter_map(|layer| layer.mounted.as_ref());
    mounts.into_iter().find(|mounted| mounted.point == point)
}

fn swap(facts: &AdviseFacts) -> Option<Found> {
    let is_on_card = |name: &str, on_mount: &Option<String>| match on_mount {
        Some(point) => on_card(facts, point).is_some(),
        None => {
            let last = name.rsplit('/').next().unwrap_or_default();
            let is_it = |layer: &&Layer| layer.name == last || layer.mapped_name.as_deref() == Some(last);
            facts.stack.layers.iter().any(|layer| is_it(&layer))
        }
    };
    let (on, off): (Vec<_>, Vec<_>) =
        facts.system.swaps.iter().partition(|swap| is_on_card(&swap.name, &swap.on_mount));
    let first = on.first()?;
    let uptime = facts.activity.machine.uptime_s.filter(|seconds| *seconds > 0);
    let written = facts.system.swapped_out_bytes;
    // With another swap space the kernel does not say what went where.
    let saves = written.zip(uptime).filter(|_| off.is_empty()).map(|(bytes, s)| bytes as f64 * DAY_S / s as f64);
    let severity = if written.is_some_and(|bytes| bytes > 0) { Severity::Warning } else { Severity::Notice };
    let mut finding = Finding::new(severity, "advise-swap", format!("The system swaps to the card ({})", first.name))
        .advice("use zram instead, or no swap; a process that is short of memory then writes nothing to the card")
        .advice("where it must stay: vm.swappiness=10 makes the kernel drop cached files first")
        .command("swapoff -a", "end it until the next boot; the line in /etc/fstab starts it again")
        .source("Linux Documentation/admin-guide/sysctl/vm.rst; Documentation/admin-guide/blockdev/zram.rst");
    for swap in &on {
        let (used, size) = (bytes(swap.used_bytes as f64), bytes(swap.size_bytes as f64));
        finding = finding.evidence(format!("/proc/swaps: {}: {used} of {size} in use", swap.name));
    }
    if let Some(written) = written {
        finding = finding.evidence(format!("/proc/vmstat, pswpout: {} since the boot", bytes(written as f64)));
    }
    if let Some(swappiness) = facts.system.swappiness {
        finding = finding.evidence(format!("vm.swappiness = {swappiness}"));
    }
    Some((finding, saves))
}

fn mount(layer: &Layer, mounted: &MountedOn) -> Vec<Finding> {
    let has = |option: &str| mounted.options.iter().any(|known| known == option);
    let value = |key: &str| mounted.options.iter().find_map(|option| option.strip_prefix(key)?.strip_prefix('='));
    let (point, fstype) = (&mounted.point, mounted.fstype.as_str());
    if has("ro") {
        return Vec::new();
    }
    let evidence = format!("{} on {point}: {fstype}, {}", layer.name, mounted.options.join(","));
    let found = |severity, id, what: String| Finding::new(severity, id, what).evidence(evidence.clone());
    let mut all = Vec::new();
    if has("sync") || has("wsync") {
        all.push(
            found(
                Severity::Warning,
                "advise-sync",
                format!("Every write to {point} is synchronous (mount option sync or wsync)"),
            )
            .advice("remove it; programs that need it call fsync"),
        );
    }
    if value("data") == Some("journal") {
        all.push(
            found(
                Severity::Warning,
                "advise-data-journal",
                format!("All data of {point} is written twice (data=journal)"),
            )
            .advice("data=ordered, the default, writes only metadata twice"),
        );
    }
    if has("nobarrier") || value("barrier") == Some("0") {
        all.push(
            found(Severity::Warning, "advise-barrier", format!("A power cut can destroy {point} (nobarrier)"))
                .advice("remove `nobarrier`: without flushes the card's cache may lose the journal"),
        );
    }
    let is_journalled = matches!(fstype, "ext4" | "ext3" | "f2fs" | "btrfs" | "xfs");
    if is_journalled && !has("noatime") {
        let what = if has("relatime") { "at most once a day" } else { "at every read" };
        let severity = if has("relatime") { Severity::Notice } else { Severity::Warning };
        all.push(
            found(severity, "advise-atime", format!("Reading a file of {point} writes its time of access, {what}"))
                .advice("mount option noatime"),
        );
    }
    if matches!(fstype, "ext4" | "ext3") && value("commit").is_none() {
        all.push(
            found(Severity::Notice, "advise-commit", format!("{point} is committed every 5 s"))
                .advice("commit=30 gathers more into a write; a power cut then loses up to 30 s of what nobody synced")
                .command(
                    "emmclab sim what-if sim:PROFILE --rate 2GB/day --change fs=ext4,commit=30",
                    "what that brings for a part and a load",
                ),
        );
    }
    if matches!(fstype, "vfat" | "exfat" | "msdos") && !point.starts_with("/boot") && !point.starts_with("/efi") {
        all.push(
            found(
                Severity::Notice,
                "advise-fat",
                format!("{point} is {fstype}: it has no journal, and a power cut can damage it"),
            )
            .advice("ext4 or f2fs for what is written in operation"),
        );
    }
    if fstype == "btrfs" {
        all.extend(btrfs(mounted, &evidence));
    }
    if fstype == "ext2" {
        all.push(
            found(Severity::Notice, "advise-ext2", format!("{point} is ext2: no journal, and it cannot be trimmed"))
                .advice("ext4, with `tune2fs -O has_journal`, or mounted as ext4 at least"),
        );
    }
    all
}

/// What btrfs writes beyond other filesystems.
fn btrfs(mounted: &MountedOn, evidence: &str) -> Vec<Finding> {
    let has = |name: &str| mounted.options.iter().any(|option| option.starts_with(name));
    let point = &mounted.point;
    let found =
        |id, what: String| Finding::new(Severity::Notice, id, what).evidence(evidence.to_owned()).source("btrfs(5)");
    let mut all = Vec::new();
    if !has("compress") {
        all.push(
            found("advise-btrfs-compress", format!("{point} is btrfs, which can write less: it does not compress"))
                .advice(
                    "mount option compress=zstd:1, for what is written from then on; measure it on a slow processor",
                ),
        );
    }
    if has("autodefrag") {
        all.push(
            found("advise-btrfs-defrag", format!("Files of {point} are written again to be in one piece (autodefrag)"))
                .advice("remove `autodefrag`: pieces cost a card far less than writing again"),
        );
    }
    all
}

/// Containers that live on the card.
fn containers(facts: &AdviseFacts, of: &Containers) -> Option<Found> {
    let mounted = on_card(facts, &of.mount)?;
    if of.running == 0 || mounted.options.iter().any(|option| option == "ro") {
        return None;
    }
    let (engine, folder) = (&of.engine, &of.folder);
    let what = format!("Containers of {engine} run from the card: what they change and print is written to it");
    let mut finding = Finding::new(Severity::Notice, "advise-containers", what)
        .evidence(format!("{folder} is on {}; {} root filesystems are mounted from it", of.mount, of.running))
        .advice("tmpfs for what need not last (docker run --tmpfs), and --read-only where nothing else is written");
    if engine == "docker" && of.logs_grow() {
        let driver = of.log_driver.as_deref().unwrap_or("not set, which is json-file");
        finding = finding
            .evidence(format!("/etc/docker/daemon.json: log-driver {driver}, without max-size"))
            .advice("\"log-driver\": \"local\" limits their logs; \"journald\" leaves them to the journal");
    }
    let finding = finding.source("dockerd(8)");
    Some((finding, saved(facts, &ENGINES)))
}

fn logs(facts: &AdviseFacts) -> Vec<Found> {
    let folder = facts.system.folders.iter().find(|folder| folder.path == "/var/log");
    let Some(folder) = folder.filter(|folder| on_card(facts, &folder.mount).is_some()) else { return Vec::new() };
    let evidence = format!("/var/log is on {} ({})", folder.mount, folder.fstype);
    let mut all = Vec::new();
    if let Some(journald) = facts.system.journald.as_ref().filter(|journald| journald.is_persistent()) {
        let finding = Finding::new(Severity::Notice, "advise-journal", "The journal is written to the card")
            .evidence(evidence.clone())
            .evidence(format!("journald.conf: Storage={}", journald.storage))
            .advice("Storage=volatile keeps it in memory; a reboot loses it")
            .advice("where it must stay: SystemMaxUse=32M, SyncIntervalSec=15m, and fewer messages of the loudest unit")
            .command("journalctl --disk-usage", "how much of it there is");
        all.push((finding, saved(facts, &[JOURNALD])));
    }
    let loggers = saved(facts, &LOGGERS);
    if loggers.is_some() || facts.system.journald.is_none() {
        let finding = Finding::new(Severity::Notice, "advise-logs", "Logs are written to the card")
            .evidence(evidence)
            .advice("keep /var/log in memory (tmpfs, or a service that copies it at the end), or send it elsewhere");
        all.push((finding, loggers));
    }
    all
}

/// What processes of these names write a day, where that was watched.
fn saved(facts: &AdviseFacts, names: &[&str]) -> Option<f64> {
    let watched = facts.system.watched.as_ref()?;
    let of_them = watched.writers.iter().filter(|writer| names.contains(&writer.name.as_str()));
    let written: u64 = of_them.map(|writer| writer.written_bytes).sum();
    (written > 0).then(|| written as f64 * DAY_S / watched.seconds)
}

fn temporary(facts: &AdviseFacts) -> Option<Finding> {
    let folder = facts.system.folders.iter().find(|folder| folder.path == "/tmp")?;
    let mounted = on_card(facts, &folder.mount)?;
    if mounted.options.iter().any(|option| option == "ro") {
        return None;
    }
    Some(
        Finding::new(Severity::Notice, "advise-tmp", "/tmp is on the card")
            .evidence(format!("/tmp is on {} ({})", folder.mount, folder.fstype))
            .advice("a tmpfs keeps it in memory; what must survive a reboot belongs to /var/tmp")
            .command("systemctl enable tmp.mount", "on systems with systemd"),
    )
}

fn scheduler(system: &SystemUse) -> Option<Finding> {
    let scheduler = system.scheduler.as_deref()?;
    (scheduler == "bfq").then(|| {
        Finding::new(
            Severity::Notice,
            "advise-scheduler",
            "The scheduler is bfq, which needs processor time for each request",
        )
        .evidence("queue/scheduler: bfq")
        .advice(
            "mq-deadline, the kernel's default for one queue; on a slow core measure both with `emmclab trace record`",
        )
        .source("Linux Documentation/block/bfq-iosched.rst")
    })
}

fn alignment(facts: &AdviseFacts) -> Vec<Finding> {
    let Some((unit, register)) = unit(facts) else { return Vec::new() };
    let partitions = facts.stack.layers.iter().filter(|layer| layer.kind == LayerKind::Partition);
    let begins = partitions.filter_map(|layer| Some((layer, layer.start_sectors?.checked_mul(512)?)));
    let inside = begins.filter(|(_, start)| start % unit != 0);
    let finding = |(layer, start): (&Layer, u64)| {
        let what = format!("{} begins {} inside a unit of the card", layer.name, bytes((start % unit) as f64));
        Finding::new(Severity::Notice, "advise-alignment", what)
            .evidence(format!("{}/start: byte {start}; {register}: {unit} bytes", layer.name))
            .advice("a new partition table, at the next installation: writes at its beginning touch two units now")
            .command(format!("emmclab advise layout /dev/{}", facts.disk), "lines for sfdisk, genimage, wic and mkfs")
    };
    inside.map(finding).collect()
}

/// The unit that partitions should begin at, and where it is stated. Unit: bytes.
fn unit(facts: &AdviseFacts) -> Option<(u64, &'static str)> {
    let card = facts.card?;
    if card.kind == Some(CardKind::Sd) {
        let au = card.ssr.and_then(|ssr| Ssr(ssr).au_size_bytes())?;
        return (au > 0).then_some((au, "SSR.AU_SIZE"));
    }
    let (info, _) = card.ext_csd.as_ref()?.decode();
    let group = info.hc_erase_group.map(|bytes| bytes.0).filter(|bytes| *bytes > 0)?;
    Some((group, "HC_ERASE_GRP_SIZE"))
}

fn writers(facts: &AdviseFacts, per_day: Option<f64>) -> Vec<Found> {
    let Some(watched) = &facts.system.watched else { return Vec::new() };
    let total: u64 = watched.writers.iter().map(|writer| writer.written_bytes).sum();
    let has_advice = |name: &str| {
        name == JOURNALD || LOGGERS.contains(&name) || !facts.system.containers.is_empty() && ENGINES.contains(&name)
    };
    let known = |writer: &&Writer| has_advice(&writer.name);
    let named = watched.writers.iter().filter(|writer| !known(writer));
    let named = named.filter(|writer| writer.written_bytes as f64 >= SHARE_NAMED * total as f64);
    let finding = |writer: &Writer| {
        let daily = writer.written_bytes as f64 * DAY_S / watched.seconds;
        let share = 100.0 * writer.written_bytes as f64 / total.max(1) as f64;
        let what = format!("{} writes {} a day, {share:.0} % of what processes wrote", writer.name, bytes(daily));
        let finding = Finding::new(Severity::Notice, "advise-writer", what)
            .evidence(format!("/proc/PID/io: {} in {:.0} s", bytes(writer.written_bytes as f64), watched.seconds))
            .advice("write less often, to memory, or to another disk; what it writes to may be on another disk already")
            .command("emmclab trace who --for 1min", "into which files");
        // More than all that reaches the card cannot be saved.
        (finding, per_day.map(|per_day| daily.min(per_day)))
    };
    named.map(finding).collect()
}
