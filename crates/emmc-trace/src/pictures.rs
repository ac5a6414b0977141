//! What pictures of a recording need: latencies over time, sizes and depths over time, single requests around the
//! slowest one. Bounded, whatever the length of the recording.

use std::collections::VecDeque;

use emmc_units::Nanos;

use crate::correlate::Correlator;
use crate::event::What;
use crate::follow::{Survey, parts, thread};
use crate::open::Recording;
use crate::request::Request;

/// Points of the picture of latencies; the slowest requests are points beyond these.
const POINTS: u64 = 3000;
const SLOWEST: usize = 100;
/// Columns of the heat maps.
const COLUMNS: usize = 96;
/// Requests before and after the slowest one.
const AROUND: usize = 60;
/// Classes of sizes and depths: powers of two.
const CLASSES: usize = 16;

/// A request as a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// When it began, from the first request. Unit: seconds.
    pub at_s: f64,
    /// From begin to end. Unit: microseconds.
    pub took_us: f64,
    /// read, write and so on.
    pub op: &'static str,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// Who waits.
    pub mode: &'static str,
}

/// A request with its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// `write 4 KiB`, and its thread.
    pub name: String,
    /// Each with its begin and end, from the first request. Unit: microseconds.
    pub parts: Vec<(&'static str, f64, f64)>,
}

/// A heat map: columns of equal time.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// Names of the rows, from the bottom.
    pub rows: Vec<String>,
    /// For each column, the figure of each row.
    pub columns: Vec<Vec<f64>>,
    /// The width of a column. Unit: seconds.
    pub column_s: f64,
}

/// Everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pictures {
    /// Requests, evenly chosen, and the slowest.
    pub points: Vec<Point>,
    /// Whether some requests are no point.
    pub is_sample: bool,
    /// Requests by size; `None` without requests that have one.
    pub sizes: Option<Heat>,
    /// The share of time at each depth of the driver's queue. Unit: percent.
    pub depths: Option<Heat>,
    /// Requests around the slowest one, in the order of their completion.
    pub lines: Vec<Line>,
}

/// Reads a recording again, for its pictures.
pub fn pictures(recording: Recording, survey: &Survey) -> Pictures {
    let Some((from, to)) = survey.times else { return Pictures::default() };
    let Recording { mut events, .. } = recording;
    let (mut correlator, mut collector) = (Correlator::default(), Collector::new(survey, from, to));
    events.run(|event| {
        let mut add = |request: &Request| collector.add(request);
        correlator.take(event, &mut add);
        if let What::Block(block) = &event.what {
            if survey.selection.has(block.device) {
                let chosen = correlator.devices().iter().filter(|device| survey.selection.has(device.device));
                collector.depth(event.at, chosen.map(crate::Device::depth).sum());
            }
        }
    });
    correlator.end(&mut |request: &Request| collector.add(request));
    collector.result(survey)
}

struct Collector<'a> {
    survey: &'a Survey,
    from: u64,
    column_ns: u64,
    every: u64,
    seen: u64,
    points: Vec<Point>,
    /// The slowest that are no points, longest first.
    slowest: Vec<Point>,
    sizes: Vec<[u64; CLASSES]>,
    depths: Vec<[u64; CLASSES]>,
    /// The depth since an instant.
    now: (u64, u32),
    last: VecDeque<Request>,
    around: Vec<Request>,
    /// Those of them after the slowest.
    after: usize,
    longest: Option<Nanos>,
}

impl<'a> Collector<'a> {
    fn new(survey: &'a Survey, from: Nanos, to: Nanos) -> Self {
        Self {
            survey,
            from: from.0,
            column_ns: (to.0 - from.0).div_ceil(COLUMNS as u64).max(1),
            every: survey.requests.div_ceil(POINTS).max(1),
            seen: 0,
            points: Vec::new(),
            slowest: Vec::new(),
            sizes: vec![[0; CLASSES]; COLUMNS],
            depths: vec![[0; CLASSES]; COLUMNS],
            now: (from.0, 0),
            last: VecDeque::new(),
            around: Vec::new(),
            after: 0,
            longest: None,
        }
    }

    fn column(&self, at: u64) -> usize {
        ((at.saturating_sub(self.from) / self.column_ns) as usize).min(COLUMNS - 1)
    }

    fn add(&mut self, request: &Request) {
        if !self.survey.selection.has(request.device) {
            return;
        }
        let took = request.total();
        let point = Point {
            at_s: (request.began().0.saturating_sub(self.from)) as f64 / 1e9,
            took_us: took.0 as f64 / 1e3,
            op: request.op.name(),
            size_bytes: u64::from(request.sectors) * 512,
            mode: request.mode.name(),
        };
        if self.seen % self.every == 0 {
            self.points.push(point);
        } else {
            let place = self.slowest.partition_point(|other| other.took_us >= point.took_us);
            if place < SLOWEST {
                self.slowest.insert(place, point);
                self.slowest.truncate(SLOWEST);
            }
        }
        self.seen += 1;
        if request.sectors > 0 {
            let column = self.column(request.began().0);
            self.sizes[column][(request.sectors.next_power_of_two().ilog2() as usize).min(CLASSES - 1)] += 1;
        }
        if self.longest.is_none_or(|longest| took > longest) {
            self.longest = Some(took);
            self.around = self.last.iter().copied().collect();
            self.around.push(*request);
            self.after = 0;
        } else if self.after < AROUND {
            self.around.push(*request);
            self.after += 1;
        }
        if self.last.len() == AROUND {
            self.last.pop_front();
        }
        self.last.push_back(*request);
    }

    /// The depth from now on.
    fn depth(&mut self, at: Nanos, depth: u32) {
        let (mut since, before) = self.now;
        self.now = (at.0.max(since), depth);
        let class = if before == 0 { 0 } else { 1 + before.next_power_of_two().ilog2() as usize };
        while since < at.0 {
            let column = self.column(since);
            let end = self.from + (column as u64 + 1) * self.column_ns;
            let until = if column == COLUMNS - 1 { at.0 } else { at.0.min(end) };
            self.depths[column][class.min(CLASSES - 1)] += until - since;
            since = until;
        }
    }

    /// Requests that are long before or after the slowest one say nothing of it.
    fn keep_near(&mut self) {
        let slowest = self.around.iter().find(|request| Some(request.total()) == self.longest).copied();
        let Some(slowest) = slowest else { return };
        let reach = slowest.total().0.saturating_mul(4);
        let (from, to) = (slowest.began().0.saturating_sub(reach), slowest.ended().0.saturating_add(reach));
        self.around.retain(|request| request.ended().0 >= from && request.began().0 <= to);
    }

    fn result(mut self, survey: &Survey) -> Pictures {
        let is_sample = self.seen > (self.points.len() + self.slowest.len()) as u64;
        self.points.append(&mut self.slowest);
        let size = |class: usize| emmc_units::Bytes(512 << class).to_string();
        let depth = |class: usize| match class {
            0 => "0".into(),
            1 => "1".into(),
            2 => "2".into(),
            class => format!("{} to {}", (1 << (class - 2)) + 1, 1 << (class - 1)),
        };
        self.keep_near();
        let start = self.around.iter().map(|request| request.began().0).min().unwrap_or(0);
        let micros = |at: Nanos| at.0.saturating_sub(start) as f64 / 1e3;
        let line = |request: &Request| Line {
            name: format!(
                "{} {}, {}",
                request.op.name(),
                emmc_units::Bytes(u64::from(request.sectors) * 512),
                thread(&survey.notes, request.pid)
            ),
            parts: parts(request).map(|(name, from, to)| (name, micros(from), micros(to))).collect(),
        };
        let column_s = self.column_ns as f64 / 1e9;
        let share = |figure: u64| 100.0 * figure as f64 / self.column_ns as f64;
        Pictures {
            is_sample,
            sizes: heat(&self.sizes, column_s, size, |count| count as f64),
            depths: heat(&self.depths, column_s, depth, share),
            lines: self.around.iter().map(line).collect(),
            points: self.points,
        }
    }
}

/// The rows from the lowest to the highest class that occurs.
fn heat(
    counts: &[[u64; CLASSES]],
    column_s: f64,
    name: impl Fn(usize) -> String,
    figure: impl Fn(u64) -> f64,
) -> Option<Heat> {
    let occurs = |class: &usize| counts.iter().any(|column| column[*class] > 0);
    let first = (0..CLASSES).find(occurs)?;
    let last = (0..CLASSES).rfind(occurs)?;
    let column = |column: &[u64; CLASSES]| column[first..=last].iter().map(|count| figure(*count)).collect();
    let columns = counts.iter().map(column).collect();
    Some(Heat { rows: (first..=last).map(name).collect(), columns, column_s })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Input, Storage, open, survey};

    /// Writes of 4 KiB, one each millisecond, that take 100 us, or 900 us once; in blkparse's form.
    fn recording(count: u64, slow: u64) -> Vec<Input> {
        let mut text = String::new();
        for number in 0..count {
            let (at, took) = (number * 1000, if number == slow { 900 } else { 100 });
            for (at, action) in [(at, "Q"), (at, "G"), (at, "D"), (at + took, "C")] {
                let (seconds, micros) = (at / 1_000_000, at % 1_000_000);
                text += &format!("8,0 0 {number} {seconds}.{micros:06}000 1 {action} WS {} + 8 [a]\n", 64 * number);
            }
        }
        let storage: Arc<dyn Storage> = Arc::new(text.into_bytes());
        vec![Input { name: "f".into(), storage }]
    }

    #[test]
    fn pictures_are_bounded_and_have_the_slowest_request() {
        let (count, slow) = (20_000, 12_345);
        let found = survey(open(recording(count, slow)).unwrap(), None);
        let pictures = pictures(open(recording(count, slow)).unwrap(), &found);
        assert!(pictures.is_sample && pictures.points.len() as u64 <= POINTS + SLOWEST as u64);
        let longest = pictures.points.iter().max_by(|a, b| a.took_us.total_cmp(&b.took_us)).unwrap();
        assert_eq!((longest.took_us, longest.size_bytes), (900.0, 4096));
        assert!((longest.at_s - 12.345).abs() < 1e-6);
        // One each millisecond; those of 3.6 ms before and after it.
        assert_eq!(pictures.lines.len(), 8);
        let slowest = &pictures.lines[3];
        assert_eq!(slowest.parts.last().map(|(_, from, to)| (to - from).round()), Some(900.0));
        let sizes = pictures.sizes.unwrap();
        assert_eq!(sizes.rows, ["4 KiB"]);
        assert_eq!(sizes.columns.iter().flatten().sum::<f64>(), count as f64);
        let depths = pictures.depths.unwrap();
        assert_eq!(depths.rows, ["0", "1"]);
        // A tenth of the time one request is at the driver.
        assert!((depths.columns[3][1] - 10.0).abs() < 0.6, "{:?}", depths.columns[3]);
        assert!(depths.columns.iter().all(|column| column.iter().sum::<f64>() < 100.1));
    }
}
