//! Background operations, interrupts, reset, power-off, firmware and write reliability.

use emmc_regs::ext_csd::{DeviceInfo, ExtCsd, Field, reg, rst_n_name};

use super::super::findings::power_cut::{self, AreaReliability};
use super::{Rows, Topic, at_least, on_off, plain, with, yes_no};
use crate::evidence::Citation;

pub(super) fn rows(csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    rows.topic = Topic::Service;
    background(info, rows);
    interruption(csd, info, rows);
    firmware(csd, info, rows);
    reliability(csd, info, rows);
}

fn background(info: &DeviceInfo, rows: &mut Rows) {
    if !at_least(info, 5) {
        return;
    }
    let supported = info.bkops_supported.map(|supported| plain(if supported { "yes" } else { "no" }));
    rows.add("background operations supported", reg::BKOPS_SUPPORT, supported);
    if info.bkops_supported == Some(false) {
        return;
    }
    let manual = info.bkops_manual.map(|manual| match manual {
        true => with("on", "permanent: the bit is one-time. The host must start them"),
        false => with("off", "can be switched on once, permanently"),
    });
    rows.add("manual background operations", [Citation::bits(reg::BKOPS_EN, "MANUAL_EN")], manual);
    if at_least(info, 8) {
        let auto = info.bkops_auto.map(|auto| match auto {
            true => with("on", "the part runs them when idle"),
            false => with("off", "can be switched on and off"),
        });
        rows.add("automatic background operations", [Citation::bits(reg::BKOPS_EN, "AUTO_EN")], auto);
    }
    let status = info.bkops_status.map(|status| match status {
        0 => plain("none"),
        1 => plain("some, not critical"),
        2 => with("some", "performance suffers"),
        _ => with("critical", "the part needs time to clean up"),
    });
    rows.add("background operations outstanding", reg::BKOPS_STATUS, status);
}

fn interruption(csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    let implementation = csd.bit(reg::HPI_FEATURES, 1).map(|stop| if stop { "by CMD12" } else { "by CMD13" });
    let supported = info.hpi_supported.map(|supported| match supported {
        true => with("yes", implementation.unwrap_or_default()),
        false => plain("no"),
    });
    rows.add("high-priority interrupt supported", reg::HPI_FEATURES, supported);
    if info.hpi_supported != Some(false) {
        let on = info.hpi_on.map(|on| plain(on_off(on)));
        rows.add("high-priority interrupt", reg::HPI_MGMT, on);
    }
    let reset = info.rst_n_function.map(|function| {
        with(
            rst_n_name(function),
            match function {
                0 => "the reset line has no effect",
                1 => "the reset line resets the part",
                2 => "the reset line never has an effect",
                _ => "",
            },
        )
    });
    rows.add("hardware reset", reg::RST_n_FUNCTION, reset);
    let notification = named(csd, reg::POWER_OFF_NOTIFICATION).filter(|_| at_least(info, 6));
    rows.add_if_told(
        "power-off notification",
        reg::POWER_OFF_NOTIFICATION,
        notification.map(|name| match csd.byte(reg::POWER_OFF_NOTIFICATION) {
            Some(0) => with(name, "the host does not announce a power-off"),
            _ => plain(name),
        }),
    );
    let awareness = named(csd, reg::PRODUCTION_STATE_AWARENESS).filter(|_| at_least(info, 7));
    rows.add_if_told("production state", reg::PRODUCTION_STATE_AWARENESS, awareness.map(plain));
}

fn firmware(csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    if !at_least(info, 7) {
        return;
    }
    let update = info.ffu.map(|ffu| match (ffu, info.fw_update_disabled) {
        (true, Some(true)) => with("no", "supported, but permanently disabled"),
        (true, _) => plain("yes"),
        (false, _) => plain("no"),
    });
    rows.add("firmware update in the field", [reg::SUPPORTED_MODES, reg::FW_CONFIG], update);
    if info.ffu == Some(true) {
        let status = named(csd, reg::FFU_STATUS);
        rows.add_if_told(
            "last firmware update",
            reg::FFU_STATUS,
            status.map(|name| match csd.byte(reg::FFU_STATUS) {
                Some(0) => with(name, "or none was ever made"),
                _ => plain(name),
            }),
        );
    }
}

fn reliability(csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    rows.topic = Topic::Reliability;
    if !at_least(info, 5) {
        return;
    }
    const NAMES: [&str; 5] = [
        "write reliability of the user area",
        "write reliability of general purpose area 1",
        "write reliability of general purpose area 2",
        "write reliability of general purpose area 3",
        "write reliability of general purpose area 4",
    ];
    let areas = power_cut::reliability(csd, info);
    if !areas.iter().any(|area| area.index == 0) {
        rows.add(NAMES[0], "", None);
    }
    for AreaReliability { index, protected } in areas {
        let Some(name) = NAMES.get(index) else { continue };
        let meaning = match protected {
            true => "older data stays intact if a write is interrupted",
            false => "an interrupted write may damage older data",
        };
        rows.add(name, reg::WR_REL_SET, Some(with(on_off(protected), meaning)));
    }
    let settable = info.hw_partition.wr_rel_writable.map(|settable| match (settable, info.hw_partition.completed) {
        (true, Some(true)) => with("no", "partitioning is completed"),
        (true, _) => with("once", "together with partitioning"),
        (false, _) => with("no", "fixed by the maker"),
    });
    rows.add("write reliability can be set", [Citation::bits(reg::WR_REL_PARAM, "HS_CTRL_REL")], settable);
    let reliable = info.enhanced_reliable_write.map(|enhanced| match (enhanced, info.reliable_write_sectors) {
        (true, _) => with("enhanced", "any number of sectors, each old or new after a power cut"),
        (false, Some(sectors)) => with("plain", format!("1 or {sectors} sectors at once")),
        (false, None) => plain("plain"),
    });
    rows.add("reliable write", [Citation::bits(reg::WR_REL_PARAM, "EN_REL_WR"), reg::REL_WR_SEC_C.into()], reliable);
    let rpmb = csd.bit(reg::WR_REL_PARAM, 4).filter(|_| at_least(info, 8));
    let rpmb = rpmb.map(|wide| yes_no(wide, "32 half sectors at once", "at most 2 half sectors at once"));
    rows.add_if_told("RPMB writes of 8 KiB", [Citation::bits(reg::WR_REL_PARAM, "EN_RPMB_REL_WR")], rpmb);
}

/// The standard's name for what a register holds, whole.
pub(super) fn named(csd: &ExtCsd, field: &'static Field) -> Option<&'static str> {
    let raw = csd.raw(field)?;
    Some(field.values.iter().find(|(value, _)| *value == raw).map_or("not assigned", |(_, name)| *name))
}
