//! Each finding in one sentence for a reader who does not know the registers, and a command that helps.
//!
//! Absent on purpose: one-time commands. Those are planned with `emmclab plan` and never offered for copying.

use super::{Facts, Names};
use crate::finding::{Finding, Severity};
use crate::health::{Forecast, LifeReading};

/// Adds the sentence and the command of a finding, unless the finding has its own.
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
        "life-used-a" => return Some(life(&facts.health.life_a, facts.forecast)),
        "life-used-b" => return Some(life(&facts.health.life_b, facts.forecast)),
        "pre-eol" if finding.severity == Severity::Critical => {
            "This card has nearly run out of spare blocks and may refuse writes soon."
        }
        "pre-eol" => "This card has used most of its spare blocks: plan its replacement.",
        "vendor-life-used" => "The maker's own report says that this card has used most of its life.",
        "vendor-spare-used" => "The maker's own report says that this card is running out of spare blocks.",
        "no-health-registers" | "health-undefined" => "This card does not report how worn it is.",
        "write-reliability-off" => "A power cut at a bad moment can damage files that were saved long ago.",
        "cache-on" => "A power cut can lose the last writes, even those that a program reported as saved.",
        "partitioning-unfinished" => "A permanent change of this card's layout was started and not finished.",
        "partitioning-completed" => "This card's layout was fixed at production and can never change.",
        "boot-enabled" => "The board boots from this card's boot area: updates must handle it with care.",
        "boot-protected-for-good" => "The boot loader on this card can never be updated.",
        "boot-unprotected" => "Any program with root rights can overwrite the boot loader.",
        "card-protected-for-good" => "This card is permanently read-only: replace it.",
        "card-protected" => "This card refuses all writes until its protection is switched off.",
        "user-area-protection" => "Parts of this card may refuse writes.",
        "disk-read-only" => "The system refuses to write to this card.",
        "bus-slower-than-offered" => "The board runs this card slower than the card allows.",
        "bus-narrow" => "The board uses only some of this card's data lines.",
        "command-queue-off" => "A feature that speeds up many small reads is not in use.",
        "bkops-manual" => "The card waits for the host to start its housekeeping, so writes may stall.",
        "bkops-off" => "The card does its housekeeping while programs wait, so writes may stall at times.",
        "bkops-outstanding" => "The card is behind with its housekeeping: writes are slow until it has caught up.",
        "exception-event" => "The card asks for attention.",
        "hardware-reset-off" => "A board that hangs may need a power cycle to start again.",
        "no-trim" => "The system cannot report free space to this card, so writes slow down with age.",
        "trim-off" => "The system does not report free space to this card, so writes slow down with age.",
        "firmware-update-failed" => "The card's last firmware update failed; it runs its old firmware.",
        "mode-not-normal" => "The card is in a service mode and should not be used until it is restarted.",
        "production-state" => "The card is still in its production state: its data may fade.",
        "card-locked" => "The card is locked by a password.",
        "sectors-4k" => "Old software that expects 512-byte sectors does not work with this card.",
        "sectors-emulated" => "Small writes cost more than necessary on this card.",
        "host-link-errors" => "Data is corrupted between board and card: check the board before the card.",
        "sources-conflict" | "capacity-disagreement" => "The given files are from different cards or different times.",
        "register-contradiction" => "This copy of the card's registers is damaged or mixed from two cards.",
        "register-anomaly" => "The card reports values that the standard does not allow.",
        "checksum-wrong" => "The data read from the card is damaged: read it again before you trust it.",
        "sysfs-stale" => "The system shows outdated wear values for this card.",
        "which-disk" => "The given files describe several cards.",
        "partition-past-end" | "partition-larger-than-disk" | "filesystem-past-end" => {
            "The partitions are larger than this card: data is at risk."
        }
        "partition-overlap" => "Two partitions share the same space: data is at risk.",
        "partition-off-page" | "partition-off-group" => {
            "The partitions are not aligned to the card's blocks: writes cost more."
        }
        "vendor-report-refused" => "The maker's report could not be decoded; it is neither good nor bad news.",
        "vendor-report-damaged" => "The maker's report was damaged when it was saved or copied, so it is not used.",
        "vendor-spare-disagrees" | "vendor-life-disagrees" | "vendor-implausible" => {
            "The maker's report and the card's registers contradict each other."
        }
        "sd-no-application-class" => "This card was not made to run programs.",
        "sd-a2-needs-queue" => "This card is fast only in devices that support its queue and cache; most do not.",
        "sd-slow-class" => "This card promises little speed.",
        "sd-one-line" => "The board uses one of this card's four data lines, which makes it slow.",
        _ => return None,
    };
    Some(plain.into())
}

/// "This card has used 80 % to 90 % of its rated life; at the present rate it ends between ... and ...".
fn life(life: &LifeReading, forecast: Option<&Forecast>) -> String {
    let end = forecast.and_then(Forecast::end_of_life);
    match (life.used_lower_percent, life.used_upper_percent) {
        (Some(lower), Some(upper)) => {
            let rest = end.unwrap_or_else(|| format!("at most {} % is left", 100 - lower));
            format!("This card has used {lower} % to {upper} % of its rated life; {rest}.")
        }
        _ => "This card has used up its rated life and can fail at any time: replace it.".into(),
    }
}

fn command(finding: &Finding, facts: &Facts<'_>, names: &Names<'_>) -> Option<(String, &'static str)> {
    let source = names.source;
    let on_device = |before: &str, after: &str| names.device.as_ref().map(|device| format!("{before}{device}{after}"));
    match finding.id {
        "life-used-a" | "life-used-b" | "vendor-life-used" if finding.severity == Severity::Notice => {
            Some((format!("emmclab snapshot {source} -o wear.json"), "run weekly; it shows when the life ends"))
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
                .then(|| (format!("emmclab plan hwpart {source} --wrrel on"), "protects old data from a power cut"))
        }
        "boot-unprotected" => {
            on_device("mmc writeprotect boot set ", "").map(|command| (command, "until the next power cycle"))
        }
        "user-area-protection" => {
            on_device("mmc writeprotect user get ", "").map(|command| (command, "shows what is protected"))
        }
        "bkops-off" if facts.at_least(8) => on_device("mmc bkops_en auto ", "")
            .map(|command| (command, "the card then does its housekeeping when idle")),
        "bus-slower-than-offered" | "bus-narrow" => names.device.as_ref().map(|device| {
            let number = device.trim_start_matches("/dev/mmcblk");
            (format!("cat /sys/kernel/debug/mmc{number}/ios"), "the mode that the kernel uses")
        }),
        "host-link-errors" => names.device.as_ref().map(|device| {
            let number = device.trim_start_matches("/dev/mmcblk");
            (format!("cat /sys/kernel/debug/mmc{number}/err_stats"), "shows whether errors continue")
        }),
        "disk-read-only" => names.device.as_ref().map(|device| {
            let disk = device.trim_start_matches("/dev/");
            (format!("cat /sys/block/{disk}/force_ro"), "1: set in the kernel")
        }),
        "partition-past-end" | "partition-overlap" => {
            on_device("fdisk -l ", "").map(|command| (command, "shows the partition table"))
        }
        "partitioning-unfinished" => {
            Some((format!("emmclab show {source} --field PARTITION_SETTING_COMPLETED"), "after a power cycle"))
        }
        "checksum-wrong" => names.device.as_ref().map(|device| {
            (format!("emmclab snapshot {device} -o read-again.json"), "reads the registers again; compare the two")
        }),
        "sysfs-stale" => Some((format!("emmclab check {source}"), "reads the card itself")),
        "sd-no-application-class" | "sd-slow-class" | "sd-a2-needs-queue" => {
            on_device("emmclab study ", " --measure").map(|command| (command, "measures the read speed"))
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
        for (offset, value) in
            [(192, 8), (268, 9), (269, 11), (267, 3), (166, 1), (160, 1), (214, 0x80), (221, 16), (224, 1), (179, 8)]
        {
            csd.set_uint(offset, 1, value);
        }
        // A part of which the size and the groups are known can be planned for.
        for (offset, width, value) in [(212, 4, 31_080_448), (224, 1, 1), (221, 1, 16), (157, 3, 939), (160, 1, 7)] {
            csd.set_uint(offset, width, value);
        }
        let mut card = CardData::new(name, format);
        card.ext_csd = Some(csd);
        card
    }

    #[test]
    fn every_finding_of_a_worn_card_has_a_plain_sentence() {
        let study = study(&worn(Format::ExtCsdHex, "x.hex"), &StudyOptions::default());
        assert!(study.findings.len() >= 5, "{:?}", study.findings);
        for finding in &study.findings {
            let summary = finding.summary.as_deref().unwrap_or_else(|| panic!("{}: no summary", finding.id));
            assert!(summary.ends_with('.') && summary.len() < 100, "{}: {summary}", finding.id);
        }
        let life = study.findings.iter().find(|finding| finding.id == "life-used-a").unwrap();
        assert_eq!(
            life.summary.as_deref(),
            Some("This card has used 80 % to 90 % of its rated life; at most 20 % is left.")
        );
        let reliability = study.findings.iter().find(|finding| finding.id == "write-reliability-off").unwrap();
        assert_eq!(reliability.commands[0].command, "emmclab plan hwpart x.hex --wrrel on");
    }

    #[test]
    fn a_damaged_register_of_a_live_card_is_read_again() {
        let commands = |format, name: &str| {
            let mut card = worn(format, name);
            card.cid = emmc_regs::cid::Cid::parse_hex("1501004d384731474303dc0db061516f").ok();
            let findings = study(&card, &StudyOptions::default()).findings;
            let damaged = findings.into_iter().find(|finding| finding.id == "checksum-wrong").unwrap();
            damaged.commands.into_iter().map(|command| command.command).collect::<Vec<_>>()
        };
        assert_eq!(commands(Format::Live, "/dev/mmcblk1"), ["emmclab snapshot /dev/mmcblk1 -o read-again.json"]);
        assert_eq!(commands(Format::ExtCsdHex, "x.hex"), [""; 0]);
    }

    #[test]
    fn commands_name_a_device_of_this_machine_only() {
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
