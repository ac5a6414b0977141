//! Each finding in one sentence for somebody who knows no registers, and the command that does something about it.
//!
//! Absent on purpose: commands that are one-time. Those are planned (`emmclab plan`), never offered to be copied.

use super::{Facts, Names};
use crate::finding::{Finding, Severity};
use crate::health::LifeReading;

/// Adds the sentence and the command of a finding; one that has its own keeps it.
pub(super) fn complete(finding: &mut Finding, facts: &Facts<'_>, names: &Names<'_>) {
    if finding.summary.is_none() {
        finding.summary = summary(finding, facts);
    }
    if finding.commands.is_empty() {
        if let Some((command, why)) = command(finding, facts, names) {
            *finding = finding.clone().command(command, why);
        }
    }
}

fn summary(finding: &Finding, facts: &Facts<'_>) -> Option<String> {
    let plain = match finding.id {
        "life-used-a" => return Some(life(&facts.health.life_a)),
        "life-used-b" => return Some(life(&facts.health.life_b)),
        "pre-eol" if finding.severity == Severity::Critical => {
            "This card has nearly run out of spare blocks and may refuse writes soon."
        }
        "pre-eol" => "This card has used most of its spare blocks: plan its replacement.",
        "vendor-life-used" => "By its maker's own report this card has used up most of its life.",
        "vendor-spare-used" => "By its maker's own report this card runs out of spare blocks.",
        "no-health-registers" | "health-undefined" => "This card does not report how worn it is.",
        "write-reliability-off" => "A power cut at a bad moment can damage files that were saved long ago.",
        "cache-on" => "A power cut can lose the last writes, even those that a program believes saved.",
        "partitioning-unfinished" => "Somebody began to change this card's layout for good and did not finish.",
        "partitioning-completed" => "This card's layout was fixed at production and can never change.",
        "boot-enabled" => "The board starts from this card's boot area: an update must treat it with care.",
        "boot-protected-for-good" => "The boot loader on this card can never be updated.",
        "boot-unprotected" => "Any program with root rights can overwrite the boot loader.",
        "card-protected-for-good" => "This card can only be read, for ever: replace it.",
        "card-protected" => "This card refuses all writes until its protection is switched off.",
        "user-area-protection" => "Parts of this card may refuse writes.",
        "disk-read-only" => "The system refuses to write to this card.",
        "bus-slower-than-offered" => "The board drives this card slower than it can go.",
        "bus-narrow" => "The board uses only some of this card's data lines.",
        "command-queue-off" => "A feature that speeds up many small reads is not in use.",
        "bkops-manual" => "The card waits for permission to tidy up, so writes may stall.",
        "bkops-off" => "The card tidies up while programs wait, so writes may stall now and then.",
        "bkops-outstanding" => "The card is behind with tidying up: writes are slow until it has caught up.",
        "exception-event" => "The card calls for attention.",
        "hardware-reset-off" => "A board that hangs may need its power cut to start again.",
        "no-trim" => "The system cannot tell this card which space is free, so writing slows down with age.",
        "firmware-update-failed" => "The card's last firmware update failed; it runs its old firmware.",
        "mode-not-normal" => "The card is in a service mode and should not be used until it is restarted.",
        "production-state" => "The card was not taken out of its production state: what it holds may fade.",
        "card-locked" => "The card is locked by a password.",
        "sectors-4k" => "Old software that expects small sectors does not work with this card.",
        "sectors-emulated" => "Small writes cost more on this card than they need to.",
        "host-link-errors" => "Data is disturbed between board and card: check the board before the card.",
        "sources-conflict" | "capacity-disagreement" => "The files given are of different cards or of different times.",
        "register-anomaly" => "The card describes itself in a way that the standard does not allow.",
        "checksum-wrong" => "What was read from the card is damaged: read it again before trusting it.",
        "sysfs-stale" => "What the system shows of this card's wear is out of date.",
        "which-disk" => "The files given describe several cards.",
        "partition-past-end" | "partition-larger-than-disk" | "filesystem-past-end" => {
            "The layout on this card does not fit on it: data is at risk."
        }
        "partition-overlap" => "Two partitions share the same space: data is at risk.",
        "partition-off-page" | "partition-off-group" => {
            "The layout does not match the card's blocks: writes cost more."
        }
        "vendor-report-refused" => "The maker's report could not be read; it says neither good nor bad.",
        "vendor-spare-disagrees" | "vendor-life-disagrees" | "vendor-implausible" => {
            "The maker's report and the card's registers contradict each other."
        }
        "sd-no-application-class" => "This card was not made to run programs from.",
        "sd-a2-needs-queue" => "This card is fast only in devices that support its special mode; most do not.",
        "sd-slow-class" => "This card promises little speed.",
        "sd-one-line" => "The board uses one of this card's four data lines, which makes it slow.",
        _ => return None,
    };
    Some(plain.into())
}

/// "This card has used 80 % to 90 % of its rated life".
fn life(life: &LifeReading) -> String {
    match (life.used_lower_percent, life.used_upper_percent) {
        (Some(lower), Some(upper)) => {
            format!("This card has used {lower} % to {upper} % of its rated life; {} % at most are left.", 100 - lower)
        }
        _ => "This card has used up its rated life and can fail at any time: replace it.".into(),
    }
}

fn command(finding: &Finding, facts: &Facts<'_>, names: &Names<'_>) -> Option<(String, &'static str)> {
    let source = names.source;
    let on_device = |before: &str, after: &str| names.device.as_ref().map(|device| format!("{before}{device}{after}"));
    match finding.id {
        "life-used-a" | "life-used-b" | "vendor-life-used" if finding.severity == Severity::Notice => {
            Some((format!("emmclab snapshot {source} -o wear.json"), "once a week: shows when it will end"))
        }
        "life-used-a" | "life-used-b" | "pre-eol" | "vendor-life-used" | "vendor-spare-used" => {
            let copy = on_device("dd if=", " of=backup.img bs=4M conv=fsync status=progress");
            let copy = copy.map(|command| (command, "back it up now, then replace it"));
            copy.or_else(|| Some((format!("emmclab health {source}"), "back it up now, then replace it")))
        }
        "card-protected-for-good" => {
            on_device("dd if=", " of=backup.img bs=4M status=progress").map(|command| (command, "copy what is on it"))
        }
        "write-reliability-off" => {
            let options = crate::hwpart::options(facts.card);
            let can_be_set = options.partitionable == Some(true) && options.wrrel.can_set == Some(true);
            can_be_set
                .then(|| (format!("emmclab plan hwpart {source} --wrrel on"), "makes old data survive a power cut"))
        }
        "boot-unprotected" => {
            on_device("mmc writeprotect boot set ", "").map(|command| (command, "until the next power cycle"))
        }
        "user-area-protection" => {
            on_device("mmc writeprotect user get ", "").map(|command| (command, "what is protected"))
        }
        "bkops-off" if facts.at_least(8) => {
            on_device("mmc bkops_en auto ", "").map(|command| (command, "the card then tidies up when idle"))
        }
        "bus-slower-than-offered" | "bus-narrow" => names.device.as_ref().map(|device| {
            let number = device.trim_start_matches("/dev/mmcblk");
            (format!("cat /sys/kernel/debug/mmc{number}/ios"), "the mode that the kernel uses")
        }),
        "host-link-errors" => names.device.as_ref().map(|device| {
            let number = device.trim_start_matches("/dev/mmcblk");
            (format!("cat /sys/kernel/debug/mmc{number}/err_stats"), "do the errors go on?")
        }),
        "disk-read-only" => names.device.as_ref().map(|device| {
            let disk = device.trim_start_matches("/dev/");
            (format!("cat /sys/block/{disk}/force_ro"), "1: the kernel was told to")
        }),
        "partition-past-end" | "partition-overlap" => {
            on_device("fdisk -l ", "").map(|command| (command, "the table as it is"))
        }
        "partitioning-unfinished" => {
            Some((format!("emmclab show {source} --field PARTITION_SETTING_COMPLETED"), "after a power cycle"))
        }
        "sysfs-stale" => Some((format!("emmclab check {source}"), "asks the card itself")),
        "sd-no-application-class" | "sd-slow-class" | "sd-a2-needs-queue" => {
            on_device("emmclab study ", " --measure").map(|command| (command, "how fast it reads"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{StudyOptions, study};
    use crate::finding::Severity;
    use emmc_port::{CardData, Format};
    use emmc_regs::ext_csd::ExtCsd;

    fn worn(format: Format, name: &str) -> CardData {
        let mut csd = ExtCsd::from_bytes([0; 512]);
        for (offset, value) in [(192, 8), (268, 9), (269, 11), (267, 3), (166, 1)] {
            csd.set_uint(offset, 1, value);
        }
        let mut card = CardData::new(name, format);
        card.ext_csd = Some(csd);
        card
    }

    #[test]
    fn every_finding_of_a_worn_card_can_be_said_in_a_sentence() {
        let study = study(&worn(Format::ExtCsdHex, "x.hex"), &StudyOptions::default());
        assert!(study.findings.len() > 5, "{:?}", study.findings);
        for finding in &study.findings {
            let summary = finding.summary.as_deref().unwrap_or_else(|| panic!("{}: no summary", finding.id));
            assert!(summary.ends_with('.') && summary.len() < 100, "{}: {summary}", finding.id);
        }
        let life = study.findings.iter().find(|finding| finding.id == "life-used-a").unwrap();
        assert_eq!(
            life.summary.as_deref(),
            Some("This card has used 80 % to 90 % of its rated life; 20 % at most are left.")
        );
        let reliability = study.findings.iter().find(|finding| finding.id == "write-reliability-off").unwrap();
        assert_eq!(reliability.commands[0].command, "emmclab plan hwpart x.hex --wrrel on");
    }

    #[test]
    fn a_device_is_named_only_where_it_is_one_of_this_machine() {
        let commands = |card: &CardData| {
            let findings = study(card, &StudyOptions::default()).findings;
            let urgent = findings.into_iter().filter(|finding| finding.severity == Severity::Critical);
            urgent.flat_map(|finding| finding.commands).map(|command| command.command).collect::<Vec<_>>()
        };
        let live = commands(&worn(Format::Live, "/dev/mmcblk1"));
        assert!(live.iter().all(|command| command.contains("/dev/mmcblk1")) && !live.is_empty(), "{live:?}");
        let saved = commands(&worn(Format::ExtCsdHex, "x.hex"));
        assert!(saved.iter().all(|command| !command.contains("/dev/")) && !saved.is_empty(), "{saved:?}");
    }
}
