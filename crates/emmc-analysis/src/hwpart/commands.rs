//! The same plan as commands of U-Boot and mmc-utils, with warnings for each.

use emmc_port::{CardData, Format};
use serde::{Deserialize, Serialize};

use super::AREAS;
use super::case::Case;
use super::layout::Layout;
use super::request::ExtAttribute;

/// The commands of other tools for the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Commands {
    /// U-Boot's `mmc`: sizes in sectors, and a `check` that sends no write.
    pub u_boot: Equivalent,
    /// mmc-utils: sizes in KiB, no dry run.
    pub mmc_utils: Equivalent,
}

/// One tool's commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Equivalent {
    /// In order; empty where the tool cannot do it.
    pub commands: Vec<String>,
    /// Reasons why it cannot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cannot: Vec<String>,
    /// Warnings.
    pub warnings: Vec<String>,
}

pub(super) fn commands(case: &Case, layout: &Layout, card: &CardData) -> Option<Commands> {
    Some(Commands { u_boot: u_boot(case, layout), mmc_utils: mmc_utils(case, layout, &device(card))? })
}

/// The device that the data was read from, if it can be typed unquoted.
pub(crate) fn device(card: &CardData) -> String {
    let live = card.origins.iter().find(|origin| origin.format == Format::Live && origin.name.starts_with("/dev/"));
    let plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "/_-.".contains(c));
    live.map(|origin| origin.name.as_str()).filter(plain).unwrap_or("/dev/mmcblkN").to_string()
}

fn u_boot(case: &Case, layout: &Layout) -> Equivalent {
    let mut warnings = vec![
        "sizes are in 512-byte sectors; select the card first (`mmc list`, then its number for N)".to_string(),
        "`check` sends no write; `complete` cannot be undone and takes effect after a power cycle".into(),
        "it also writes 0 to the size registers that the plan does not use".into(),
    ];
    let ext = case.ext_attributes() != 0;
    let cannot: Vec<String> =
        ext.then(|| "it cannot set extended attributes (system code, non-persistent)".into()).into_iter().collect();
    if !cannot.is_empty() {
        return Equivalent { cannot, ..Equivalent::default() };
    }
    let wrrel = |area: usize| match case.request.wrrel_of(area) {
        Some(true) => " wrrel on",
        Some(false) => " wrrel off",
        None => "",
    };
    let mut layout_words = String::new();
    for (index, request, _) in case.gps() {
        let enh = if request.enh { " enh" } else { "" };
        layout_words.push_str(&format!(" gp{} {}{enh}{}", index + 1, layout.gp_sectors[index].0, wrrel(index + 1)));
    }
    if case.enh.is_some() {
        let (start, size) = (layout.enh_user_start_sectors.0, layout.enh_user_sectors.0);
        layout_words.push_str(&format!(" user enh {start} {size}{}", wrrel(0)));
        warnings.push(
            "do not give `-` for the size: it subtracts the start and plain partitions from the maximum, \
             and only partitions that stand before `user` on the line"
                .into(),
        );
    } else if case.request.wrrel_of(0).is_some() {
        layout_words.push_str(&format!(" user{}", wrrel(0)));
    }
    let line = |mode: &str| format!("mmc hwpartition{layout_words} {mode}");
    Equivalent { commands: vec!["mmc dev N".into(), line("check"), line("complete")], cannot, warnings }
}

fn mmc_utils(case: &Case, layout: &Layout, device: &str) -> Option<Equivalent> {
    let (now, wanted) = (case.facts.wr_rel_set().unwrap_or(0), case.wr_rel_wanted().unwrap_or(0));
    let change: Vec<usize> = (0..5).filter(|area| (now ^ wanted) >> area & 1 == 1).collect();
    let mut cannot = Vec::new();
    if now & !wanted != 0 {
        cannot.push("it can only switch write reliability on".to_string());
    }
    if change.len() > 1 {
        let areas: Vec<&str> = change.iter().map(|area| AREAS[*area]).collect();
        cannot.push(format!(
            "it sets write reliability of one area at a time ({}), but WR_REL_SET is written once",
            areas.join(", ")
        ));
    }
    if !cannot.is_empty() {
        return Some(Equivalent { cannot, ..Equivalent::default() });
    }
    let kib = |sectors: u64| sectors / 2;
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (index, request, _) in case.gps() {
        let ext = match request.ext {
            ExtAttribute::None => 0,
            ext => ext.nibble(),
        };
        let size = kib(layout.gp_sectors[index].0);
        parts.push(("gp create", format!("{size} {} {} {ext} {device}", index + 1, u8::from(request.enh))));
    }
    if case.enh.is_some() {
        let (start, size) = (kib(layout.enh_user_start_sectors.0), kib(layout.enh_user_sectors.0));
        parts.push(("enh_area set", format!("{start} {size} {device}")));
    }
    parts.extend(change.first().map(|area| ("write_reliability set", format!("{area} {device}"))));
    let last = parts.len().checked_sub(1)?;
    let commands = parts
        .iter()
        .enumerate()
        .map(|(index, (verb, words))| format!("mmc {verb} {} {words}", if index == last { "-y" } else { "-c" }));
    let mut warnings = vec![
        "sizes are in KiB".to_string(),
        "there is no dry run: `-n` and `-c` write every register but PARTITION_SETTING_COMPLETED".into(),
        "only the last command has `-y`, which commits; power off and on afterwards".into(),
        "it checks the enhanced maximum only after writing the sizes, and rounds sizes that are not whole groups"
            .into(),
    ];
    if device.ends_with('N') {
        warnings.push(format!("replace {device} by the card's device"));
    }
    Some(Equivalent { commands: commands.collect(), cannot, warnings })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{planned, s0j56, with};

    #[test]
    fn published_commands_are_reproduced() {
        let plan = planned(&with(&s0j56(), &[(167, 1, 0x1e)]), "max", &[], Some("on"));
        let commands = plan.commands.unwrap();
        assert_eq!(
            commands.u_boot.commands,
            [
                "mmc dev N",
                "mmc hwpartition user enh 0 15384576 wrrel on check",
                "mmc hwpartition user enh 0 15384576 wrrel on complete"
            ]
        );
        assert_eq!(
            commands.mmc_utils.commands,
            ["mmc enh_area set -c 0 7692288 /dev/mmcblkN", "mmc write_reliability set -y 0 /dev/mmcblkN"]
        );
        assert!(commands.mmc_utils.warnings.iter().any(|warning| warning.contains("`-n`")));
        assert!(commands.u_boot.warnings.iter().any(|warning| warning.contains("`-`")));
    }

    #[test]
    fn partitions_precede_the_user_area() {
        let plan = planned(
            &with(&s0j56(), &[(167, 1, 0x1e)]),
            "8MiB:16MiB",
            &["1:64MiB:enh", "2:8MiB"],
            Some("gp1=off,user=on"),
        );
        let commands = plan.commands.unwrap();
        let line = "mmc hwpartition gp1 131072 enh wrrel off gp2 16384 user enh 16384 32768 wrrel on check";
        assert_eq!(commands.u_boot.commands[1], line);
        assert!(commands.mmc_utils.commands.is_empty());
        assert_eq!(commands.mmc_utils.cannot.len(), 2);
        let plan = planned(&s0j56(), "", &["1:64MiB:enh", "2:8MiB"], None);
        let commands = plan.commands.unwrap();
        let create = ["mmc gp create -c 65536 1 1 0 /dev/mmcblkN", "mmc gp create -y 8192 2 0 0 /dev/mmcblkN"];
        assert_eq!(commands.mmc_utils.commands, create);
        assert_eq!(commands.u_boot.commands[2], "mmc hwpartition gp1 131072 enh gp2 16384 complete");
    }

    #[test]
    fn a_step_that_a_tool_lacks_is_a_note_not_a_command() {
        let ext = planned(&s0j56(), "", &["1:64MiB:sys"], None).commands.unwrap();
        assert_eq!(ext.mmc_utils.commands, ["mmc gp create -y 65536 1 0 1 /dev/mmcblkN"]);
        assert!(ext.u_boot.commands.is_empty() && !ext.u_boot.cannot.is_empty());
        let off = planned(&s0j56(), "", &[], Some("user=off")).commands.unwrap();
        assert_eq!(off.u_boot.commands[1], "mmc hwpartition user wrrel off check");
        assert_eq!(off.mmc_utils.cannot, ["it can only switch write reliability on"]);
        let refused = planned(&s0j56(), "0s:31080448s", &[], None);
        assert_eq!((refused.commands, refused.after), (None, None));
    }

    #[test]
    fn commands_name_a_live_card_unless_its_name_needs_quoting() {
        use emmc_port::Format;
        for (name, format, device) in [
            ("/dev/mmcblk2", Format::Live, "/dev/mmcblk2"),
            ("/dev/mmc blk", Format::Live, "/dev/mmcblkN"),
            ("/dev/x;reboot", Format::Live, "/dev/mmcblkN"),
            ("/dev/mmcblk2", Format::ExtCsdBinary, "/dev/mmcblkN"),
        ] {
            let mut card = s0j56();
            card.origins = emmc_port::CardData::new(name, format).origins;
            let commands = planned(&card, "max", &[], None).commands.unwrap();
            assert_eq!(commands.mmc_utils.commands, [format!("mmc enh_area set -y 0 7692288 {device}")]);
        }
    }
}
