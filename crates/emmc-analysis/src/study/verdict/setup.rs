//! The card's configuration: bus, hardware partitions, boot source.

use emmc_regs::CardKind;

use super::super::bus_mode::{self, SaidBy};
use super::super::configuration::boot_source;
use super::{Answer, Facts};
use crate::finding::Severity;

/// What an SD card promises, most important first.
const SD_ROWS: [&str; 4] =
    ["speed class", "UHS speed grade", "application performance class", "write protection of the whole card"];

pub(super) fn answer(facts: &Facts<'_>) -> Answer {
    let parts: Vec<String> = match facts.study.identity.kind {
        Some(CardKind::Sd) => sd(facts),
        _ => [bus(facts), partitioned(facts), boots(facts), command_queue(facts), trim(facts)]
            .into_iter()
            .flatten()
            .collect(),
    };
    if parts.is_empty() {
        return Answer::new(Severity::Unknown, "this source holds no settings");
    }
    Answer::new(Severity::Good, parts.join("; "))
}

fn bus(facts: &Facts<'_>) -> Option<String> {
    let offered = bus_mode::fastest_offered(facts.info);
    let in_use = bus_mode::in_use(facts.card, facts.info).filter(|in_use| in_use.said_by != SaidBy::Register);
    match (in_use, offered) {
        (Some(in_use), Some(offered)) if in_use.at_most < offered => {
            Some(format!("runs in {}, could run {}", in_use.mode.name(), offered.name()))
        }
        (Some(in_use), _) => Some(format!("runs in {}", in_use.mode.name())),
        (None, Some(offered)) => Some(format!("offers {}", offered.name())),
        (None, None) => None,
    }
}

fn partitioned(facts: &Facts<'_>) -> Option<String> {
    let options = &facts.study.hw_partition;
    if let Some(done) = &options.partitioned {
        let enhanced = done.enh_user_bytes.filter(|bytes| bytes.0 > 0);
        return Some(match enhanced {
            Some(bytes) => format!("permanently partitioned, {} pSLC", bytes.rounded()),
            None => "permanently partitioned".into(),
        });
    }
    let most = options.max_enhanced.as_ref().map(|most| most.enhanced_bytes.rounded());
    match (options.partitionable, most) {
        (Some(true), Some(most)) => Some(format!("not partitioned ({most} pSLC possible)")),
        (Some(true), None) => Some("not partitioned".into()),
        (Some(false), _) => Some("cannot be partitioned".into()),
        (None, _) => None,
    }
}

fn boots(facts: &Facts<'_>) -> Option<String> {
    let enable = facts.info.boot_config.boot_partition_enable?;
    Some(if enable == 0 { "boot off".into() } else { format!("boots from {}", boot_source(enable)) })
}

/// What the kernel uses; the register reads 0 while a tool reads it.
fn command_queue(facts: &Facts<'_>) -> Option<String> {
    let used = facts.card.sysfs.get("cmdq_en")?.trim() == "1";
    Some(if used { "command queue on".into() } else { "command queue off".into() })
}

/// The mechanisms that inform the card about deleted data.
fn trim(facts: &Facts<'_>) -> Option<String> {
    let setup = facts.card.blocks.trim.as_ref()?;
    let some = match (setup.mounts_with_discard.is_empty(), setup.fstrim_timer) {
        _ if setup.discard_max_bytes == Some(0) => "no trim: the kernel discards nothing",
        (false, _) if setup.mounts_without_discard.is_empty() => "trim at each delete",
        (_, Some(true)) => "trim weekly (fstrim.timer)",
        (false, _) => "trim on some filesystems",
        (true, Some(false)) if !setup.mounts_without_discard.is_empty() => "no trim",
        (true, _) => return None,
    };
    Some(some.into())
}

fn sd(facts: &Facts<'_>) -> Vec<String> {
    let rows = &facts.study.configuration.rows;
    let of =
        |name: &&str| rows.iter().find(|row| *row.name == **name).map(|row| format!("{}: {}", row.name, row.value));
    SD_ROWS.iter().filter_map(of).take(3).collect()
}
