//! SD cards: speed classes, allocation unit, commands.

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::csd::Csd;
use emmc_regs::scr::Scr;
use emmc_regs::ssr::Ssr;
use emmc_units::Bytes;

use super::super::bus_mode;
use super::{Rows, Topic, plain, with, yes_no};

pub(super) fn rows(card: &CardData, rows: &mut Rows) {
    bus_in_use(card, rows);
    let scr = card.scr.map(Scr);
    let ssr = card.ssr.map(Ssr);
    let widths = scr.map(|scr| plain(if scr.has_bus_width(4) { "1 and 4" } else { "1" }));
    rows.add("data lines offered", "SCR SD_BUS_WIDTHS", widths);
    let count = scr.map(|scr| yes_no(scr.has_set_block_count(), "CMD23 before a transfer", ""));
    rows.add_if_told("set block count", "SCR CMD_SUPPORT", count);
    rows.topic = Topic::Performance;
    promises(ssr, rows);
    rows.topic = Topic::Media;
    let unit = ssr.and_then(|ssr| ssr.au_size_bytes()).map(|bytes| plain(Bytes(bytes).to_string()));
    rows.add("allocation unit", "SSR AU_SIZE", unit);
    let unit = ssr.and_then(|ssr| ssr.uhs_au_size_bytes()).map(|bytes| plain(Bytes(bytes).to_string()));
    rows.add_if_told("UHS allocation unit", "SSR UHS_AU_SIZE", unit);
    let erase =
        ssr.and_then(|ssr| Some((ssr.erase_timeout_ms(1)?, ssr.erase_timeout_ms(ssr.erase_size())?, ssr.erase_size())));
    let erase = erase.map(|(one_ms, ms, units)| {
        with(format!("at most {} s", one_ms as f64 / 1e3), format!("at most {} s for {units} units", ms as f64 / 1e3))
    });
    rows.add_if_told("erase time of one allocation unit", "SSR ERASE_SIZE, ERASE_TIMEOUT, ERASE_OFFSET", erase);
    let discard = ssr.map(|ssr| yes_no(ssr.supports_discard(), "the card may drop erased blocks", ""));
    rows.add_if_told("discard", "SSR DISCARD_SUPPORT", discard);
    let whole = ssr.map(|ssr| yes_no(ssr.supports_fule(), "one command erases the whole user area", ""));
    rows.add_if_told("full user area erase", "SSR FULE_SUPPORT", whole);
    rows.topic = Topic::Protection;
    let whole = card.csd.map(|bytes| {
        let csd = Csd::new(CardKind::Sd, bytes);
        plain(match (csd.perm_write_protect(), csd.tmp_write_protect()) {
            (true, _) => "permanent",
            (false, true) => "until switched off",
            (false, false) => "not protected",
        })
    });
    rows.add("write protection of the whole card", "CSD PERM_WRITE_PROTECT, TMP_WRITE_PROTECT", whole);
}

/// The mode and the lines in use, as the kernel or U-Boot prints them.
fn bus_in_use(card: &CardData, rows: &mut Rows) {
    // The kernel prints a code and, in brackets, its name: "6 (sd uhs SDR104)".
    let name = |text: &'_ String| text.split_once('(').map_or(text.as_str(), |(_, name)| name).replace(')', "");
    match (card.host.ios.get("timing spec"), &card.stated.bus_mode) {
        (Some(text), _) => rows.add_if_told("bus mode in use", "debugfs ios, timing spec", Some(plain(name(text)))),
        (None, Some(text)) => rows.add_if_told("bus mode in use", "printed text", Some(plain(text.trim()))),
        (None, None) => {}
    }
    if let Some((lines, _, source)) = bus_mode::lines_in_use(card) {
        rows.add_if_told("data lines in use", source, Some(plain(lines.to_string())));
    }
}

fn promises(ssr: Option<Ssr>, rows: &mut Rows) {
    let class = |class: Option<u64>, prefix: &str, mb_per_s: fn(u64) -> u64| {
        class.map(|class| match class {
            0 => plain("none"),
            _ => with(format!("{prefix}{class}"), format!("at least {} MB/s sustained write speed", mb_per_s(class))),
        })
    };
    let speed = ssr.map(|ssr| class(ssr.speed_class(), "C", |class| class));
    rows.add("speed class", "SSR SPEED_CLASS", speed.map(reserved));
    let grade = ssr.map(|ssr| class(ssr.uhs_speed_grade(), "U", |grade| grade * 10));
    rows.add("UHS speed grade", "SSR UHS_SPEED_GRADE", grade.map(reserved));
    let video = ssr.map(|ssr| class(ssr.video_speed_class(), "V", |class| class));
    rows.add("video speed class", "SSR VIDEO_SPEED_CLASS", video.map(reserved));
    let application = ssr.map(|ssr| match ssr.app_perf_class() {
        Some(0) => plain("none"),
        Some(1) => with("A1", "at least 1500 random reads and 500 random writes of 4 KiB a second"),
        Some(2) => {
            with("A2", "at least 4000 random reads and 2000 random writes of 4 KiB a second, with cache and queue")
        }
        _ => reserved(None),
    });
    rows.add("application performance class", "SSR APP_PERF_CLASS", application);
    let depth =
        ssr.and_then(|ssr| ssr.queue_depth()).map(|depth| with("yes", format!("up to {depth} concurrent tasks")));
    rows.add_if_told("command queue supported", "SSR PERFORMANCE_ENHANCE", depth);
}

fn reserved(told: Option<(String, String)>) -> (String, String) {
    told.unwrap_or_else(|| plain("a code that the specification reserves"))
}
