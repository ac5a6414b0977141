//! Bus, cache and command queue.

use emmc_port::CardData;
use emmc_regs::ext_csd::{DeviceInfo, ExtCsd, bus_modes, reg};

use super::super::bus_mode::{self, SaidBy};
use super::{Rows, Topic, flags, on_off, plain, with, yes_no};
use crate::evidence::Evidence;

/// What the host controller reports, for any card type.
pub(super) fn host_rows(card: &CardData, rows: &mut Rows) {
    rows.topic = Topic::Bus;
    for (key, name) in [
        ("clock", "requested clock"),
        ("actual clock", "clock"),
        ("signal voltage", "signal voltage"),
        ("vdd", "supply voltage"),
        ("driver type", "driver type in use"),
    ] {
        let told = card.host.ios.get(key).map(|text| plain(text.trim()));
        rows.add_if_told(name, format!("debugfs ios, {key}"), told);
    }
    if let (Some(hz), true) = (card.stated.bus_speed_hz, card.host.ios.is_empty()) {
        rows.add_if_told("clock", "printed text", Some(plain(format!("{hz} Hz"))));
    }
}

pub(super) fn rows(card: &CardData, csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    bus(card, csd, info, rows);
    cache(csd, info, rows);
    queue(card, info, rows);
}

fn bus(card: &CardData, csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    let offered = info.device_type.map(|device_type| {
        let modes: Vec<&str> = bus_modes(device_type).collect();
        let fastest = bus_mode::fastest_offered(info);
        let meaning =
            fastest.map(|mode| format!("{} carries at most {} MB/s on 8 lines", mode.name(), mode.mb_per_s()));
        with(if modes.is_empty() { "none".into() } else { modes.join(", ") }, meaning.unwrap_or_default())
    });
    rows.add("bus modes offered", reg::DEVICE_TYPE, offered);
    let strobe = info.strobe.map(|strobe| yes_no(strobe, "HS400 without tuning", ""));
    rows.add_if_told("enhanced strobe supported", reg::STROBE_SUPPORT, strobe);
    let in_use = bus_mode::in_use(card, info);
    let meaning = in_use.as_ref().map_or(String::new(), |in_use| {
        let either = if in_use.at_most == in_use.mode { "" } else { "or DDR52, which has the same code; " };
        let when = match in_use.said_by {
            SaidBy::Kernel => "set by the kernel",
            SaidBy::Register => "set by the tool that read the registers",
            SaidBy::Text => "as printed; the kernel may use another mode",
        };
        format!("{either}{when}")
    });
    let told = in_use.map(|in_use| (with(in_use.mode.name(), meaning), in_use.evidence));
    let (told, source) = told.map_or((None, Evidence::default()), |(told, source)| (Some(told), source));
    rows.add("bus mode in use", source, told);
    let lines = bus_mode::lines_in_use(card);
    let source = lines.as_ref().map(|(_, _, evidence)| evidence.clone()).unwrap_or_default();
    rows.add("data lines in use", source, lines.map(|(lines, _, _)| plain(lines.to_string())));
    const STRENGTHS: [(u8, &str); 5] = [
        (0, "type 0, 50 ohm"),
        (1, "type 1, 33 ohm"),
        (2, "type 2, 66 ohm"),
        (3, "type 3, 100 ohm"),
        (4, "type 4, 40 ohm"),
    ];
    let strengths =
        csd.byte(reg::DRIVER_STRENGTH).filter(|strengths| *strengths != 0).map(|raw| plain(flags(raw, &STRENGTHS)));
    rows.add_if_told("driver strengths offered", reg::DRIVER_STRENGTH, strengths);
}

fn cache(csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    rows.topic = Topic::Cache;
    let size = info.cache.map(|cache| match cache.0 {
        0 => plain("none"),
        _ => with(cache.to_string(), "volatile: lost in a power cut unless flushed"),
    });
    rows.add("cache size", reg::CACHE_SIZE, size);
    if info.cache.is_none_or(|cache| cache.0 > 0) {
        let state = info.cache_on.map(|on| match on {
            true => with("on", "writes may be acknowledged before they are in the flash"),
            false => with("off", "writes are in the flash when acknowledged"),
        });
        rows.add("cache", reg::CACHE_CTRL, state);
        let policy = csd
            .bit(reg::CACHE_FLUSH_POLICY, 0)
            .filter(|fifo| *fifo)
            .map(|_| with("FIFO", "the cache is flushed in write order"));
        rows.add_if_told("cache flush policy", reg::CACHE_FLUSH_POLICY, policy);
        let barrier = csd.bit(reg::BARRIER_SUPPORT, 0).filter(|barrier| *barrier).map(|_| plain("supported"));
        rows.add_if_told("cache barrier", reg::BARRIER_SUPPORT, barrier);
    }
}

fn queue(card: &CardData, info: &DeviceInfo, rows: &mut Rows) {
    rows.topic = Topic::Queue;
    let supported = info.cmdq_supported.map(|supported| match (supported, info.cmdq_depth) {
        (true, Some(depth)) => with("yes", format!("up to {depth} concurrent tasks")),
        (true, None) => plain("yes"),
        (false, _) => plain("no"),
    });
    rows.add("command queue supported", [reg::CMDQ_SUPPORT, reg::CMDQ_DEPTH], supported);
    if info.cmdq_supported == Some(false) {
        return;
    }
    let kernel = card.sysfs.get("cmdq_en").map(|text| text.trim() != "0");
    match kernel {
        Some(on) => rows.add("command queue", "sysfs cmdq_en", Some(plain(on_off(on)))),
        None => {
            let register = info.cmdq_on.map(|on| match on {
                true => plain("on"),
                false => with("off", "at the time of reading; Linux disables the queue to read the register"),
            });
            rows.add("command queue", reg::CMDQ_MODE_EN, register);
        }
    }
}
