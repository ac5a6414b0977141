//! Damaged and mixed sources never improve a card's verdict, and never give it a figure that it does not have.
//!
//! Every dump and text in testdata, unchanged and with worn registers inserted, is cut at each byte, loses each byte,
//! doubles each byte and is wrapped at each byte; then two at a time are cut and joined. A case is judged as `check`
//! judges it.
//!
//! A lost or doubled digit of a decimal number changes no width, and the text usually does not repeat the number: the
//! capacity is not compared there. Wear is always compared, and a cut end always counts.
//!
//! A join at the same place of two sources of one length is left out: if their form has no redundancy, the result is a
//! complete source of that form, and no reader can detect it. The same holds for a join that is a complete `life_time`
//! file of ten bytes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use emmc_analysis::health::{CheckStatus, HealthOptions, check, health};
use emmc_port::CardData;
use emmc_port::saved::read;
use emmc_regs::ext_csd::reg;

/// Which share of the single-byte cases a usual run takes: one of this many, different ones for each seed.
const SHARE: usize = 16;

/// Cuts and joins of a usual run.
const JOINS: usize = 1000;

/// The sequences of a usual run's joins, each of as many.
const SEEDS: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0x94d0_49bb_1331_11eb, 0xbf58_476d_1ce4_e5b9];

/// The sequences of the complete run's joins.
const MANY_SEEDS: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

/// A source, whole.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) figures: Figures,
    pub(crate) status: CheckStatus,
}

/// The wear and the capacity in a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// PRE_EOL_INFO, life time A, life time B.
    health: [Option<u16>; 3],
    /// SEC_COUNT, the size in words, the sizes of whole disks.
    capacity: BTreeSet<String>,
}

impl Figures {
    fn of(card: &CardData) -> Self {
        let health = health(card, &HealthOptions::default());
        let readings = [&health.pre_eol, &health.life_a.reading, &health.life_b.reading];
        let mut capacity = BTreeSet::new();
        if let Some(sectors) = card.ext_csd.as_ref().and_then(|ext_csd| ext_csd.raw(reg::SEC_COUNT)) {
            capacity.insert(format!("{sectors} sectors"));
        }
        capacity.extend(card.stated.user_capacity.iter().map(|size| format!("{} to {}", size.min.0, size.max.0)));
        let is_whole = |name: &str| name.strip_prefix("mmcblk").is_some_and(|rest| rest.parse::<u8>().is_ok());
        let whole = card.blocks.disks.iter().filter(|disk| is_whole(&disk.name));
        capacity.extend(whole.filter_map(|disk| disk.bytes).map(|bytes| format!("{} bytes", bytes.0)));
        Self { health: readings.map(|reading| reading.raw), capacity }
    }

    /// Whether each figure is one of a whole source's.
    fn are_of(&self, whole: &[&Source]) -> bool {
        let health = |index: usize| {
            let figure = self.health[index];
            figure.is_none() || whole.iter().any(|source| source.figures.health[index] == figure)
        };
        let capacity = |figure: &String| whole.iter().any(|source| source.figures.capacity.contains(figure));
        (0..3).all(health) && self.capacity.iter().all(capacity)
    }
}

/// The state of `check`, and the values it used; `None` if the source is refused, which `check` prints as UNKNOWN.
pub(crate) fn judged(bytes: &[u8]) -> Option<(CheckStatus, Figures)> {
    let card = read("f", bytes).ok()?;
    Some((check(&card, &HealthOptions::default()).status, Figures::of(&card)))
}

fn source(name: String, bytes: Vec<u8>) -> Option<Source> {
    let (status, figures) = judged(&bytes)?;
    Some(Source { name, bytes, figures, status })
}

/// The files in testdata that are read as cards, and their copies with worn registers.
pub(crate) fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata"), &mut files);
    files.sort();
    let mut sources = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(bytes) = std::fs::read(&file) else { continue };
        if bytes.len() > 64 << 10 {
            continue;
        }
        for (what, worn) in worn(&bytes) {
            sources.extend(source(format!("{name}, {what}"), worn));
        }
        sources.extend(source(name, bytes));
    }
    sources
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        // The copied /sys trees are read file by file elsewhere.
        if path.is_dir() && !path.ends_with("sysfs") {
            collect(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}

/// The same source of a worn part: one register after the other at its end.
fn worn(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut made = Vec::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return made };
    for (what, label, offset, value) in [
        ("PRE_EOL_INFO 3", "PRE_EOL_INFO", reg::PRE_EOL_INFO.offset, "03"),
        ("life time A 0x0b", "DEVICE_LIFE_TIME_EST_TYP_A", reg::DEVICE_LIFE_TIME_EST_TYP_A.offset, "0b"),
        ("life time B 0x0a", "DEVICE_LIFE_TIME_EST_TYP_B", reg::DEVICE_LIFE_TIME_EST_TYP_B.offset, "0a"),
    ] {
        let digits = text.trim();
        if digits.len() == 1024 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            let at = 2 * usize::from(offset);
            made.push((what, format!("{}{value}{}\n", &digits[..at], &digits[at + 2..]).into_bytes()));
        } else if text.contains(label) {
            let lines: Vec<String> = text.lines().map(|line| with_value(line, label, value)).collect();
            made.push((what, (lines.join("\n") + "\n").into_bytes()));
        }
    }
    made
}

/// Texts of sdmon and emmcparm in which the card is nearly used up: their numbers have no width, so that only cuts
/// count.
pub(crate) fn worn_vendor_texts() -> Vec<Source> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let worn = [
        ("sdmon/sandisk-industrial-readme/sdmon.json.txt", "Used\": 1,", "Used\": 100,"),
        (
            "sdmon/apacer-readme/sdmon.json.txt",
            "enduranceRemainLifePercent\": 99.97",
            "enduranceRemainLifePercent\": 10.00",
        ),
        (
            "sdmon/sandisk-ultra-sd128/sdmon.json.txt",
            "enduranceRemainLifePercent\": 99.94",
            "enduranceRemainLifePercent\": 5.00",
        ),
        ("sdmon/transcend-460t-64g/sdmon.json.txt", "Remaining life\": 100%", "Remaining life\": 10%"),
        ("seeds_console/emmcparm_spare_block.txt", "[%]: 0.00", "[%]: 95.00"),
    ];
    let made = worn.into_iter().map(|(file, from, to)| {
        let text = String::from_utf8_lossy(&std::fs::read(folder.join(file)).unwrap()).replace(from, to);
        source(format!("{file}, worn"), text.into_bytes()).unwrap()
    });
    made.collect()
}

/// A line with another value after its label: `[NAME]: 0x01` and `[NAME: 0x01]`.
fn with_value(line: &str, label: &str, value: &str) -> String {
    let Some(at) = line.find(label).and_then(|at| Some(at + line.get(at..)?.find("0x")? + 2)) else {
        return line.into();
    };
    format!("{}{value}{}", &line[..at], line.get(at + 2..).unwrap_or_default())
}

/// What is wrong with a case, if something is.
fn wrong(damaged: &[u8], whole: &[&Source], in_decimal: bool) -> Option<String> {
    let (status, mut figures) = judged(damaged)?;
    // A damaged source may be OK only if a complete source with these registers is OK.
    let earned = |source: &&Source| source.status == CheckStatus::Ok && source.figures.health == figures.health;
    if status == CheckStatus::Ok && !whole.iter().any(earned) {
        return Some(format!("OK though the whole is {:?}; read {:?}", whole[0].status, figures.health));
    }
    if in_decimal {
        figures.capacity.clear();
    }
    (!figures.are_of(whole)).then(|| format!("invented: {figures:?}"))
}

/// Counts cases and remembers those that went wrong.
#[derive(Default)]
pub(crate) struct Tally {
    cases: usize,
    wrong: Vec<String>,
}

impl Tally {
    pub(crate) fn take(&mut self, what: impl FnOnce() -> String, damaged: &[u8], whole: &[&Source], in_decimal: bool) {
        self.cases += 1;
        if let Some(reason) = wrong(damaged, whole, in_decimal) {
            self.wrong.push(format!("{}: {reason}", what()));
        }
    }

    pub(crate) fn end(self, name: &str) {
        println!("{name}: {} cases, {} wrong", self.cases, self.wrong.len());
        assert!(
            self.wrong.is_empty(),
            "{} wrong of {}:\n{}",
            self.wrong.len(),
            self.cases,
            self.wrong[..self.wrong.len().min(100)].join("\n")
        );
    }
}

/// A small generator of one sequence per seed, so that a failure can be repeated.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// Whether a byte is in or beside a decimal number, whose width does not reveal damage.
fn in_decimal(bytes: &[u8], at: usize) -> bool {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
    let before = bytes.iter().take(at).rev().take_while(|byte| part(byte)).count();
    let behind = bytes.iter().skip(at).take_while(|byte| part(byte)).count();
    let word = bytes.get(at - before..at + behind).unwrap_or_default();
    (1..16).contains(&word.len()) && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// Every prefix, lost byte, doubled byte and wrapped line; one of `share` positions.
fn single_bytes(sources: &[Source], share: usize, seed: usize) -> Tally {
    let mut tally = Tally::default();
    for source in sources {
        let bytes = &source.bytes;
        for at in (0..bytes.len()).filter(|at| (at + seed) % share == 0) {
            let place = |what: &str| format!("{}: {what} byte {at}", source.name);
            tally.take(|| place("cut before"), &bytes[..at], &[source], false);
            let (before, after) = bytes.split_at(at);
            let lost = [before, &after[1..]].concat();
            let doubled = [before, &after[..1], after].concat();
            let wrapped = [before, b"\n", after].concat();
            let decimal = in_decimal(bytes, at);
            tally.take(|| place("without"), &lost, &[source], decimal);
            tally.take(|| place("twice"), &doubled, &[source], decimal);
            tally.take(|| place("wrapped before"), &wrapped, &[source], decimal);
        }
    }
    tally
}

/// Whether a join is to the byte the file life_time of sysfs, `0x01 0x0b`, which has no redundancy.
fn is_life_time(joined: &[u8]) -> bool {
    let text = String::from_utf8_lossy(joined);
    let byte = |text: &str| text.len() == 4 && text.starts_with("0x") && u8::from_str_radix(&text[2..], 16).is_ok();
    text.trim_end_matches('\n').split_once(' ').is_some_and(|(a, b)| byte(a) && byte(b))
}

/// The start of one source and the end of another.
fn joins(tally: &mut Tally, sources: &[Source], count: usize, seed: u64) {
    let mut sequence = Sequence(seed);
    let end = tally.cases + count;
    while tally.cases < end {
        let (one, other) = (&sources[sequence.below(sources.len())], &sources[sequence.below(sources.len())]);
        let (cut, from) = (sequence.below(one.bytes.len() + 1), sequence.below(other.bytes.len() + 1));
        let same_place = cut == from && one.bytes.len() == other.bytes.len();
        if same_place {
            continue;
        }
        let joined = [&one.bytes[..cut], &other.bytes[from..]].concat();
        if is_life_time(&joined) {
            continue;
        }
        tally.take(
            || format!("{} up to {cut} + {} from {from}", one.name, other.name),
            &joined,
            &[one, other],
            in_decimal(&joined, cut),
        );
    }
}

#[test]
fn a_damaged_byte_or_a_cut_end_never_improves_the_verdict() {
    let sources = sources();
    let worn = sources.iter().filter(|source| matches!(source.status, CheckStatus::Warning | CheckStatus::Critical));
    assert!(sources.len() > 60 && worn.count() > 20, "{}", sources.len());
    single_bytes(&sources, SHARE, 0).end("cuts, lost and doubled bytes, wrapped lines");
}

#[test]
fn a_cut_vendor_report_never_improves_the_verdict() {
    let mut tally = Tally::default();
    for source in worn_vendor_texts() {
        assert!(
            matches!(source.status, CheckStatus::Warning | CheckStatus::Critical),
            "{}: {:?}",
            source.name,
            source.status
        );
        for end in 0..source.bytes.len() {
            tally.take(|| format!("{} up to {end}", source.name), &source.bytes[..end], &[&source], false);
        }
    }
    tally.end("cut makers' reports");
}

#[test]
fn two_joined_sources_never_improve_the_verdict() {
    let sources = sources();
    let mut tally = Tally::default();
    SEEDS.into_iter().for_each(|seed| joins(&mut tally, &sources, JOINS / SEEDS.len(), seed));
    tally.end("cuts and joins");
}

#[test]
#[ignore = "takes minutes: every position of every source"]
fn each_damaged_byte_never_improves_the_verdict() {
    single_bytes(&sources(), 1, 0).end("cuts, lost and doubled bytes, wrapped lines");
}

#[test]
#[ignore = "takes minutes: with two other seeds, 20 times as many joins each"]
fn many_joined_sources_never_improve_the_verdict() {
    let sources = sources();
    let mut tally = Tally::default();
    for seed in MANY_SEEDS {
        joins(&mut tally, &sources, 20 * JOINS, seed);
        println!("seed {seed:#x}: {} joins so far, {} wrong", tally.cases, tally.wrong.len());
    }
    tally.end("cuts and joins");
}
