use serde_json::Value;

use super::*;
use crate::{Align, BarItem, Bars, Block, Cell, Lead, LeadLine, Section, Table};

const PLAIN: TextOptions = TextOptions { width: 60, colour: false, unicode: true };
const ASCII: TextOptions = TextOptions { unicode: false, ..PLAIN };
const NARROW: TextOptions = TextOptions { width: 30, ..PLAIN };

/// The lines of one block, without the headings above it and the indent before it.
fn lines(block: impl Into<Block>, options: &TextOptions) -> Vec<String> {
    let mut document = Document::new("t");
    document.section("s", "s").push(block);
    let text = text(&document, options);
    text.lines().skip(5).map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned()).collect()
}

fn partitions() -> Table {
    let mut table = Table::new([("Partition", Align::Left), ("Sectors", Align::Right), ("Remark", Align::Left)]);
    table.row(["User area".into(), "15269888".into(), Cell::new("GPT", Tone::Good)]);
    table.row(["Boot 1", "8192", ""]);
    table.caption("Areas of the part")
}

fn findings() -> Vec<Finding> {
    vec![
        Finding::new(Severity::Warning, "id", "Write reliability is off")
            .evidence("WR_REL_SET [167] = 0x00: off for every partition")
            .advice("Set it while partitioning")
            .source("JESD84-B51, 7.4.67"),
        Finding::new(Severity::Unknown, "id", "Bad blocks"),
    ]
}

fn life() -> Bars {
    Bars::rows("Life used", "%")
        .max(100.0)
        .item(BarItem::range("Type A", 10.0, 20.0).note("0x02"))
        .item(BarItem::new("Type B", 0.0).tone(Tone::Muted).value("not reported"))
}

fn capacity() -> Bars {
    Bars::stacked("Capacity", "MiB")
        .max(100.0)
        .item(BarItem::range("User", 0.0, 75.0))
        .item(BarItem::range("Boot", 75.0, 75.01).note("two of them"))
}

fn pairs() -> Vec<KeyValue> {
    vec![
        KeyValue::new("Standard", "eMMC 5.1").note("EXT_CSD_REV [192] = 8"),
        KeyValue::new("Name", Cell::new("8GTF4R", Tone::Bad)),
    ]
}

fn every_block() -> Document {
    let mut document = Document::new("8GTF4R – study");
    document.subtitle = Some("from a file whose name is rather long: samsung-klm-8g.ext_csd.hex".to_owned());
    let section: &mut Section = document.section("all", "All");
    section
        .paragraph("Some words, more than fit on one line of a narrow terminal, 5 µs.")
        .push(pairs())
        .push(partitions());
    section
        .push(findings())
        .push(life())
        .push(capacity())
        .note(Tone::Warn, "Old values.")
        .code("sh", "mmc extcsd read");
    section.push(Chart { title: "c".into(), description: "d".into(), spec: Value::Null, text: vec!["1  2".into()] });
    document.section("none", "Nothing").push(Vec::<Finding>::new()).push(Table::default()).push(Vec::<KeyValue>::new());
    document
}

#[test]
fn headings_are_underlined_and_sections_separated() {
    let mut document = Document::new("8GTF4R: study");
    document.subtitle = Some("from a file".to_owned());
    document.section("a", "Identity").paragraph("One.").paragraph("Two.");
    document.section("b", "Health").paragraph("Three.");
    let expected = "8GTF4R: study\n=============\nfrom a file\n\nIdentity\n--------\n  One.\n\n  Two.\n\nHealth\n------\n  Three.\n";
    assert_eq!(text(&document, &ASCII), expected);
    assert_eq!(text(&document, &PLAIN), expected.replace('=', "═").replace('-', "─"));
}

#[test]
fn a_paragraph_wraps_at_the_width() {
    let words = Block::Paragraph("The registers move in steps of 10 %, so a forecast from them is rough.".to_owned());
    assert_eq!(
        lines(words.clone(), &PLAIN),
        ["The registers move in steps of 10 %, so a forecast from", "them is rough."]
    );
    assert_eq!(lines(words, &NARROW), ["The registers move in steps", "of 10 %, so a forecast from", "them is rough."]);
}

#[test]
fn names_and_values_are_aligned_or_stacked() {
    assert_eq!(lines(pairs(), &PLAIN), ["Standard  eMMC 5.1  EXT_CSD_REV [192] = 8", "Name      8GTF4R"]);
    let narrow = [KeyValue::new("DEVICE_LIFE_TIME_EST_TYP_A", "0x02").note("10 % to 20 %")];
    assert_eq!(lines(narrow.to_vec(), &NARROW), ["DEVICE_LIFE_TIME_EST_TYP_A", "  0x02", "  10 % to 20 %"]);
}

#[test]
fn a_table_has_right_aligned_numbers_and_one_rule() {
    assert_eq!(
        lines(partitions(), &ASCII),
        [
            "Areas of the part",
            "Partition   Sectors  Remark",
            "---------------------------",
            "User area  15269888  GPT",
            "Boot 1         8192",
        ]
    );
}

#[test]
fn a_table_too_wide_drops_columns_and_names_them() {
    let mut table =
        Table::new([("Byte", Align::Right), ("Name", Align::Left), ("Value", Align::Left), ("From", Align::Left)]);
    table.row(["155", "PARTITION_SETTING_COMPLETED", "", "EXT_CSD"]);
    table.row(["33", "CACHE_CTRL", "off", "EXT_CSD"]);
    let at = |width: usize, table: &Table| lines(table.clone(), &TextOptions { width, ..ASCII });
    assert_eq!(
        at(40, &table),
        [
            "Byte  Name",
            "---------------------------------",
            " 155  PARTITION_SETTING_COMPLETED",
            "  33  CACHE_CTRL",
            "(too narrow for: Value, From)",
        ]
    );
    assert_eq!(at(60, &table)[2], " 155  PARTITION_SETTING_COMPLETED         EXT_CSD");
    // Optional columns are dropped before any cell is wrapped.
    let optional = table.optional(&["Value"]);
    assert_eq!(at(46, &optional)[0], "Byte  Name                         From");
}

#[test]
fn a_one_line_table_cuts_its_last_column() {
    let mut table = Table::new([("field", Align::Left), ("meaning", Align::Left)]).one_line();
    table.row(["CACHE_CTRL", "on, as long as nobody switches it off again"]);
    table.row(["REV", "8"]);
    assert_eq!(
        lines(table, &TextOptions { width: 36, ..PLAIN }),
        [
            "field       meaning",
            "──────────────────────────────────",
            "CACHE_CTRL  on, as long as nobody…",
            "REV         8"
        ]
    );
}

#[test]
fn the_verdict_precedes_the_sections_and_commands_are_not_wrapped() {
    let mut document = Document::new("A card");
    let command = "emmclab plan hwpart /a/long/name/of/a/file.hex --wrrel on";
    let continued =
        "emmclab plan hwpart /a/long/name/of/a/file.hex \\\n          --wrrel on\n        # then old data survives\n";
    document.lead = Some(Lead {
        lines: vec![
            LeadLine::words("HEALTH", Tone::Good, "good: 0 % to 10 % used"),
            LeadLine::command("DO", "emmclab check x", "warns"),
            LeadLine::command("DO", command, "then old data survives"),
        ],
        pictures: Vec::new(),
    });
    let text = text(&document, &PLAIN);
    let expected = format!(
        "A card\n══════\nHEALTH  good: 0 % to 10 % used\nDO      emmclab check x  # warns\n        {continued}"
    );
    assert_eq!(text, expected);
}

#[test]
fn brief_findings_are_one_line_each() {
    let long =
        Finding::new(Severity::Notice, "id", "The line has no effect: after a warm reboot the board may hang for ever");
    let cut =
        Finding::new(Severity::Unknown, "id", "A sentence that has no clause that would end before the line does");
    let brief = Block::Brief(vec![long, cut]);
    assert_eq!(
        lines(brief, &PLAIN),
        ["notice    The line has no effect", "unknown   A sentence that has no clause that would end be…"]
    );
}

#[test]
fn cells_beyond_the_columns_are_shown() {
    let mut table = Table::new([("A", Align::Left)]);
    table.row(["1", "extra"]);
    assert_eq!(lines(table, &ASCII), ["A", "--------", "1  extra"]);
}

#[test]
fn a_finding_has_its_severity_as_a_word() {
    assert_eq!(
        lines(findings(), &PLAIN),
        [
            "warning   Write reliability is off",
            "          • WR_REL_SET [167] = 0x00: off for every",
            "            partition",
            "          → Set it while partitioning",
            "          Source: JESD84-B51, 7.4.67",
            "",
            "unknown   Bad blocks",
        ]
    );
    assert_eq!(lines(findings(), &ASCII)[3], "          -> Set it while partitioning");
}

#[test]
fn bars_show_ranges_and_unknown_parts() {
    assert_eq!(
        lines(life(), &ASCII),
        [
            "Life used (0 to 100 %)",
            "Type A  ..##...............  10 to 20 %    0x02",
            "Type B  ...................  not reported",
        ]
    );
    assert_eq!(
        lines(life(), &TextOptions { width: 28, ..PLAIN }),
        [
            "Life used (0 to 100 %)",
            "Type A 10 to 20 % 0x02",
            "░░░██░░░░░░░░░░░░░░░░░░░░░",
            "Type B not reported",
            "░░░░░░░░░░░░░░░░░░░░░░░░░░",
        ]
    );
}

#[test]
fn a_stack_shows_its_smallest_part_and_what_is_left() {
    assert_eq!(
        lines(capacity(), &TextOptions { width: 42, ..ASCII }),
        [
            "Capacity (0 to 100 MiB)",
            "##############################=.........",
            "#  User    75 MiB   75.0 %",
            "=  Boot  0.01 MiB  < 0.1 %  two of them",
        ]
    );
    assert_eq!(lines(capacity(), &NARROW)[1], "█████████████████████▒······");
}

#[test]
fn commands_are_never_wrapped_and_a_note_starts_with_a_word() {
    let command = "mmc extcsd read /dev/mmcblk0 | grep -E 'ENH_|WR_REL'";
    let code = Block::Code { language: "sh", text: format!("# look\n{command}\n") };
    assert_eq!(lines(code, &NARROW), ["  # look".to_owned(), format!("  {command}")]);
    assert_eq!(
        lines(Block::Note(Tone::Bad, "Cannot be undone: it is written once.".into()), &NARROW)[0],
        "danger: Cannot be undone: it"
    );
    assert_eq!(lines(Block::Note(Tone::Notice, "x".into()), &PLAIN), ["note: x"]);
}

#[test]
fn a_chart_is_printed_as_lines() {
    let chart = Chart {
        title: "Erases".into(),
        description: "Each block.".into(),
        spec: Value::Null,
        text: vec!["a    1".into()],
    };
    assert_eq!(lines(chart, &PLAIN), ["Erases", "Each block.", "a    1"]);
}

#[test]
fn no_control_character_of_a_card_reaches_the_terminal() {
    let hostile = "n\x1b[31m\r\n\u{9b}2J\u{202e}\u{2064}x\x07";
    let mut document = Document::new(hostile);
    document.subtitle = Some(hostile.to_owned());
    let section = document.section(hostile, hostile);
    let mut table = Table::new([(hostile, Align::Left)]).caption(hostile);
    table.row([hostile]);
    let finding = Finding::new(Severity::Good, "id", hostile).evidence(hostile).advice(hostile).source(hostile);
    section.paragraph(hostile).note(Tone::Bad, hostile).code("sh", hostile).push(table).push(vec![finding]);
    section.push(vec![KeyValue::new(hostile, hostile).note(hostile)]);
    section.push(Bars::rows(hostile, hostile).max(1.0).item(BarItem::new(hostile, 1.0).value(hostile).note(hostile)));
    section.push(Bars::stacked(hostile, hostile).item(BarItem::new(hostile, 1.0).note(hostile)));
    let line = hostile.to_owned();
    section.push(Chart { title: line.clone(), description: line.clone(), spec: Value::Null, text: vec![line] });
    for options in [PLAIN, ASCII, TextOptions { width: 500, ..PLAIN }] {
        let text = text(&document, &options);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(!text.contains(['\u{202e}', '\u{2064}']) && text.contains("\\x1b[31m"), "{text:?}");
    }
    let coloured = text(&document, &TextOptions { colour: true, ..PLAIN });
    assert_eq!(without_colour(&coloured), text(&document, &PLAIN));
}

#[test]
fn colour_does_not_change_the_layout() {
    let document = every_block();
    for width in 0..130 {
        let plain = text(&document, &TextOptions { width, ..PLAIN });
        let coloured = text(&document, &TextOptions { width, colour: true, ..PLAIN });
        assert_eq!(without_colour(&coloured), plain, "width {width}");
        assert!(coloured.contains("\x1b[33mwarning\x1b[0m") && !plain.contains('\x1b'));
        let widest = plain.lines().map(|line| line.width()).max().unwrap();
        assert!(widest <= width.max(WIDTH_MIN), "a line of {widest} at width {width}");
        assert!(plain.lines().all(|line| !line.ends_with(' ')), "width {width}");
        assert!(text(&document, &TextOptions { width, ..ASCII }).is_ascii());
    }
}

fn without_colour(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').map_or("", |(_, rest)| rest))
}
