//! The same plan as commands of U-Boot and mmc-utils, with warnings for each.
//!
//! Source: U-Boot `cmd/mmc.c`, mmc-utils `mmc.c`: the usage of each command.

use emmc_regs::ext_csd::reg;

use super::document::{Plan, RegisterStep, Step};
use super::groups::Protection;
use super::request::Request;
use crate::hwpart::{Commands, Equivalent};

/// The commands of both tools.
pub(super) fn commands(request: &Request, plan: &Plan, device: &str) -> Commands {
    Commands { u_boot: u_boot(request, plan), mmc_utils: mmc_utils(request, plan, device) }
}

fn byte(plan: &Plan, offset: u16) -> Option<u8> {
    plan.registers().filter(|step| step.offset == offset).map(|step| step.new).last()
}

fn u_boot(request: &Request, plan: &Plan) -> Equivalent {
    let config = byte(plan, reg::PARTITION_CONFIG.offset)
        .map(|config| format!("mmc partconf N {} {} 0", config >> 6 & 1, config >> 3 & 7));
    let bus = byte(plan, reg::BOOT_BUS_CONDITIONS.offset)
        .map(|bus| format!("mmc bootbus N {} {} {}", bus & 3, bus >> 2 & 1, bus >> 3 & 3));
    let found = match request {
        Request::Boot { .. } => Some(config.into_iter().chain(bus).collect()),
        Request::HwReset(on) => Some(vec![format!("mmc rst-function N {}", if *on { 1 } else { 2 })]),
        Request::Bkops { auto, manual } => {
            let word = |on: bool| if on { "enable" } else { "disable" };
            let auto = auto.map(|on| format!("mmc bkops N auto {}", word(on)));
            Some(auto.into_iter().chain(manual.then(|| "mmc bkops N manual enable".into())).collect())
        }
        Request::WpBoot { area, protection: Protection::PowerOn } => {
            let area = area.map_or(String::new(), |area| format!(" {area}"));
            Some(vec!["mmc dev N".into(), format!("mmc wp{area}")])
        }
        _ => None,
    };
    match found {
        _ if plan.steps.is_empty() => Equivalent::default(),
        Some(commands) => Equivalent {
            commands,
            cannot: Vec::new(),
            warnings: vec!["N is the card's number (`mmc list`); nothing is asked and nothing is read back".into()],
        },
        None => Equivalent { cannot: vec!["it has no command for this".into()], ..Equivalent::default() },
    }
}

fn mmc_utils(request: &Request, plan: &Plan, device: &str) -> Equivalent {
    if plan.steps.is_empty() {
        return Equivalent::default();
    }
    let mut warnings = vec!["nothing is asked, and nothing is read back".to_owned()];
    let raw = |step: &RegisterStep| format!("mmc extcsd write {} {:#04x} {device}", step.offset, step.new);
    let config = byte(plan, reg::PARTITION_CONFIG.offset)
        .map(|config| format!("mmc bootpart enable {} {} {device}", config >> 3 & 7, config >> 6 & 1));
    let bus = byte(plan, reg::BOOT_BUS_CONDITIONS.offset).map(|bus| {
        let mode = ["single_backward", "single_hs", "dual", "?"][usize::from(bus >> 3 & 3)];
        let width = ["x1", "x4", "x8", "?"][usize::from(bus & 3)];
        format!("mmc bootbus set {mode} {} {width} {device}", if bus >> 2 & 1 == 1 { "retain" } else { "x1" })
    });
    let commands: Vec<String> = match request {
        Request::Boot { .. } => config.into_iter().chain(bus).collect(),
        Request::Cache(on) => vec![format!("mmc cache {} {device}", if *on { "enable" } else { "disable" })],
        Request::HwReset(on) => vec![format!("mmc hwreset {} {device}", if *on { "enable" } else { "disable" })],
        Request::NativeSectors => vec![format!("mmc disable 512B emulation {device}")],
        Request::Bkops { auto: Some(true), manual: false } => vec![format!("mmc bkops_en auto {device}")],
        Request::Bkops { auto: None, manual: true } => vec![format!("mmc bkops_en manual {device}")],
        Request::WpBoot { area, protection } => {
            let permanent = if *protection == Protection::Permanent { "-p " } else { "" };
            let area = area.map_or(String::new(), |area| format!(" {area}"));
            vec![format!("mmc writeprotect boot set {permanent}{device}{area}")]
        }
        Request::WpUser { .. } => plan.steps.iter().filter_map(|step| groups(step, device)).collect(),
        _ => {
            warnings.push("`extcsd write` takes any byte and any value".into());
            plan.registers().map(raw).collect()
        }
    };
    if matches!(request, Request::WpBoot { protection: Protection::Permanent, .. })
        || matches!(request, Request::WpUser { protection: Protection::Permanent, .. })
    {
        warnings.push("permanent protection needs a build with DANGEROUS_COMMANDS_ENABLED".into());
    }
    if device.ends_with('N') {
        warnings.push(format!("replace {device} by the card's device"));
    }
    Equivalent { commands, cannot: Vec::new(), warnings }
}

fn groups(step: &Step, device: &str) -> Option<String> {
    let Step::Groups(step) = step else { return None };
    let kind = match step.protection {
        Protection::None => "none",
        Protection::Temporary => "temp",
        Protection::PowerOn => "pwron",
        Protection::Permanent => "perm",
    };
    let sectors = step.groups * step.group_sectors;
    Some(format!("mmc writeprotect user set {kind} {} {sectors} {device}", step.first_sector))
}
