//! Every block of a document, with the kind of content a report on a card has.
//!
//! `gallery` prints text; `gallery --colour`, `--ascii` and `--width N` change its look; `gallery FILE.html` (with the
//! feature
//! `html`) writes the HTML file.

use emmc_report::{
    Align, BarItem, Bars, Block, Cell, Chart, Document, Finding, KeyValue, Section, Severity, Table, TextOptions, Tone,
    text,
};

fn main() -> std::io::Result<()> {
    let mut options = TextOptions::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--colour" => options.colour = true,
            "--ascii" => options.unicode = false,
            "--width" => options.width = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(options.width),
            file => return write_html(file),
        }
    }
    print!("{}", text(&gallery(), &options));
    Ok(())
}

#[cfg(feature = "html")]
fn write_html(file: &str) -> std::io::Result<()> {
    let options = emmc_report::HtmlOptions { generated_by: "emmc-report gallery".to_owned() };
    std::fs::write(file, emmc_report::html(&gallery(), &options))
}

#[cfg(not(feature = "html"))]
fn write_html(file: &str) -> std::io::Result<()> {
    Err(std::io::Error::other(format!("cannot write {file}: built without the feature html")))
}

fn gallery() -> Document {
    let mut document = Document::new("8GTF4R: study");
    document.subtitle =
        Some("Samsung eMMC 5.1, 7.28 GiB, from samsung-klm-8g.ext_csd.hex (512 bytes, debugfs)".to_owned());
    findings(document.section("findings", "Findings"));
    identity(document.section("identity", "Identity"));
    capacity(document.section("capacity", "Capacity"));
    health(document.section("health", "Health"));
    configuration(document.section("configuration", "Configuration"));
    options(document.section("options", "What could be configured"));
    charts(document.section("wear", "Wear over the blocks"));
    document
}

fn findings(section: &mut Section) {
    section.push(vec![
        Finding::new(Severity::Critical, "id", "The reserve of spare blocks is nearly used up")
            .evidence("PRE_EOL_INFO [267] = 0x03: urgent, 90 % of the reserved blocks consumed")
            .evidence("DEVICE_LIFE_TIME_EST_TYP_B [269] = 0x0a: 90 % to 100 % of the estimated life used")
            .advice(
                "Copy the data off this part and replace it; a part in this state may become read-only at any write",
            )
            .source("JESD84-B51, 7.4.45 and 7.4.46"),
        Finding::new(Severity::Warning, "id", "Write reliability is off for the user area")
            .evidence("WR_REL_SET [167] = 0x00, WR_REL_PARAM [166] = 0x05: settable (HS_CTRL_REL)")
            .advice("A power cut during a write may damage data that was already written")
            .advice("Set it while partitioning: `emmclab plan hwpart /dev/mmcblk0 --wrrel on`")
            .source("JESD84-B51, 7.4.67"),
        Finding::new(Severity::Notice, "id", "The volatile cache is off")
            .evidence("CACHE_CTRL [33] = 0x00, CACHE_SIZE [252:249] = 65536 Kibit")
            .advice("Random writes may be several times faster with it on; check that flushes reach the part first"),
        Finding::new(Severity::Good, "id", "Background operations are run by the part itself")
            .evidence("BKOPS_EN [163] = 0x02: automatic"),
        Finding::new(Severity::Unknown, "id", "Bad blocks and erase counts")
            .evidence("A vendor reply was not given; the standard has no register for them"),
    ]);
}

fn identity(section: &mut Section) {
    section.push(vec![
        KeyValue::new("Product name", "8GTF4R").note("CID [103:56]"),
        KeyValue::new("Manufacturer", "Samsung").note("MID 0x15, OID 0x0100"),
        KeyValue::new("Standard", "eMMC 5.1").note("EXT_CSD_REV [192] = 8"),
        KeyValue::new("Manufactured", Cell::new("August 2017 or August 2033", Tone::Notice))
            .note("ambiguous by EXT_CSD_REV 8"),
        KeyValue::new("Serial number", "0x2a9c11d8"),
        KeyValue::new("Firmware", Cell::new("not given", Tone::Muted)),
    ]);
    section.paragraph(
        "The name is what the card says of itself. A name may hold anything, so it is written out where it would not be seen as \
         it is: 8GTF4R\x1b[2J<script>alert(1)</script>.",
    );
}

fn capacity(section: &mut Section) {
    section.push(
        Bars::stacked("Where the bytes are", "MiB")
            .max(7512.0)
            .item(BarItem::range("User area", 0.0, 5248.0).note("MLC"))
            .item(
                BarItem::range("User area, enhanced", 5248.0, 6272.0)
                    .tone(Tone::Good)
                    .note("pSLC, costs twice its size"),
            )
            .item(BarItem::range("General purpose 1", 6272.0, 6784.0))
            .item(BarItem::range("Boot 1 and 2", 6784.0, 6792.0))
            .item(BarItem::range("RPMB", 6792.0, 6796.0)),
    );
    let mut table = Table::new([
        ("Partition", Align::Left),
        ("Start", Align::Right),
        ("Sectors", Align::Right),
        ("Size", Align::Right),
        ("Device", Align::Left),
        ("Remark", Align::Left),
    ])
    .caption("The areas of the part, in sectors of 512 bytes");
    table.row([
        "User area",
        "0",
        "15269888",
        "7456 MiB",
        "/dev/mmcblk0",
        "partition table: GPT, 34 sectors at each end",
    ]);
    table.row(["Boot 1", "0", "8192", "4 MiB", "/dev/mmcblk0boot0", "read-only until power-up: force_ro"]);
    table.row(["Boot 2", "0", "8192", "4 MiB", "/dev/mmcblk0boot1", ""]);
    table.row([
        "RPMB".into(),
        "0".into(),
        "8192".into(),
        "4 MiB".into(),
        "/dev/mmcblk0rpmb".into(),
        Cell::new("key not programmed", Tone::Warn),
    ]);
    section.push(table);
    section.note(Tone::Notice, "7.28 GiB and 7.8 GB are the same size: 1 GiB is 1024³ bytes, 1 GB is 1000³ bytes.");
}

fn health(section: &mut Section) {
    section.push(
        Bars::rows("Life used, as the part estimates it", "%")
            .max(110.0)
            .item(BarItem::range("Type A (pSLC)", 10.0, 20.0).tone(Tone::Good).note("0x02"))
            .item(BarItem::range("Type B (MLC)", 90.0, 100.0).tone(Tone::Bad).note("0x0a"))
            .item(
                BarItem::range("Spare blocks", 80.0, 90.0)
                    .tone(Tone::Warn)
                    .value("80 % or more")
                    .note("PRE_EOL_INFO 0x02"),
            )
            .item(BarItem::new("Vendor", 0.0).tone(Tone::Muted).value("not reported")),
    );
    section.push(
        Bars::rows("Written each day", "GiB")
            .item(BarItem::new("root", 1.25))
            .item(BarItem::new("log", 7.5).note("98 % of the writes are 4 KiB"))
            .item(BarItem::new("data", 3.0)),
    );
    section.note(
        Tone::Warn,
        "The kernel read these values when the card was probed, 41 days ago; read them again with `emmclab health`.",
    );
    section.note(
        Tone::Bad,
        "The registers move in steps of 10 %: a forecast from one step is off by up to a factor of two.",
    );
    section.note(Tone::Good, "The link to the host had no CRC error in 41 days.");
}

fn configuration(section: &mut Section) {
    let mut table = Table::new([
        ("Byte", Align::Right),
        ("Name", Align::Left),
        ("Raw", Align::Right),
        ("Value", Align::Left),
        ("Access", Align::Left),
    ]);
    for (byte, name, raw, value, access, tone) in [
        ("192", "EXT_CSD_REV", "0x08", "1.8 (eMMC 5.1)", "R", Tone::Plain),
        ("185", "HS_TIMING", "0x03", "HS400, driver strength 0", "R/W/E_P", Tone::Good),
        ("183", "BUS_WIDTH", "0x06", "8 bits, dual data rate", "W/E_P", Tone::Plain),
        ("167", "WR_REL_SET", "0x00", "off for every partition", "R/W", Tone::Warn),
        ("163", "BKOPS_EN", "0x02", "automatic", "R/W and R/W/E", Tone::Plain),
        ("155", "PARTITION_SETTING_COMPLETED", "0x00", "not set", "R/W", Tone::Muted),
        ("33", "CACHE_CTRL", "0x00", "off", "R/W/E_P", Tone::Notice),
    ] {
        table.row([byte.into(), name.into(), raw.into(), Cell::new(value, tone), access.into()]);
    }
    section.push(table);
}

fn options(section: &mut Section) {
    section.paragraph("Half of the user area can become enhanced (pSLC) storage. It is written once and is permanent.");
    section.code(
        "sh",
        "# nothing is written without -y\nmmc enh_area set -n 0 7692288 /dev/mmcblk0\nmmc write_reliability set -n 0 /dev/mmcblk0 && mmc extcsd read /dev/mmcblk0 | grep -E 'ENH_|WR_REL|PARTITION_SETTING_COMPLETED'",
    );
    section.code("U-Boot", "mmc hwpartition user enh 0 15384576 wrrel on check");
}

fn charts(section: &mut Section) {
    let values: Vec<_> = (0..256u32)
        .map(|block| {
            let erases = if block < 32 { 1800 + (block * 37) % 400 } else { 300 + (block * 7919) % 260 };
            serde_json::json!({ "block": block, "erases": erases, "area": if block < 32 { "pSLC" } else { "MLC" } })
        })
        .collect();
    section.push(Block::Chart(Chart {
        title: "Erases of each block".to_owned(),
        description: "The first 32 blocks are pSLC and carry the file system's journal.".to_owned(),
        spec: serde_json::json!({
            "data": { "values": values },
            "mark": "bar",
            "height": 220,
            "encoding": {
                "x": { "field": "block", "type": "quantitative", "bin": { "step": 8 }, "title": "Block" },
                "y": { "field": "erases", "aggregate": "mean", "title": "Erases (mean)", "stack": null },
                "color": { "field": "area", "title": "Area" },
                "tooltip": [{ "field": "block", "bin": { "step": 8 } }, { "field": "erases", "aggregate": "mean", "format": ".0f" }]
            }
        }),
        text: vec!["pSLC  32 blocks   1800 to 2199 erases".to_owned(), "MLC  224 blocks    300 to  559 erases".to_owned()],
    }));
    section.push(Chart {
        title: "Life used over time".to_owned(),
        description: "The band is what a register value can stand for, the line its middle.".to_owned(),
        spec: serde_json::json!({
            "data": { "values": (0..=10).map(|step| serde_json::json!({
                "day": step * 90, "low": step * 10, "high": step * 10 + 10, "middle": step * 10 + 5 })).collect::<Vec<_>>() },
            "height": 200,
            "encoding": { "x": { "field": "day", "type": "quantitative", "title": "Days in use" } },
            "layer": [
                { "mark": { "type": "area", "opacity": 0.25, "interpolate": "step-after" },
                  "encoding": { "y": { "field": "low", "type": "quantitative", "title": "Life used (%)" }, "y2": { "field": "high" } } },
                { "mark": { "type": "line", "point": true }, "encoding": { "y": { "field": "middle", "type": "quantitative" } } }
            ]
        }),
        text: vec!["day   0:   0 to  10 %".to_owned(), "day 900: 100 to 110 %".to_owned()],
    });
}
