use crate::Tone;

/// Quantities of one unit as horizontal bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What is shown.
    pub title: String,
    /// The unit of every number, written after it.
    pub unit: String,
    /// The number at the right end; `None`: the largest `to`.
    pub max: Option<f64>,
    /// One bar for each item, or all items on one bar.
    pub layout: BarLayout,
    /// The items, in drawing order.
    pub items: Vec<BarItem>,
}

/// How the items of [`Bars`] share the space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BarLayout {
    /// Each item on a line of its own.
    #[default]
    Rows,
    /// All items side by side on one line, explained below it: shares of a whole.
    Stacked,
}

/// One quantity, or a range of it.
#[derive(Clone, Debug, PartialEq)]
pub struct BarItem {
    /// What it is.
    pub label: String,
    /// Where it starts; 0 for a plain quantity.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// The figure as written; `None`: made from the numbers and the unit.
    pub value: Option<String>,
    /// Its tone; plain items of a stack get colours of their own.
    pub tone: Tone,
    /// A remark beside the figure.
    pub note: Option<String>,
}

impl Bars {
    /// No bars yet, one line each.
    pub fn rows(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { title: title.into(), unit: unit.into(), max: None, layout: BarLayout::Rows, items: Vec::new() }
    }

    /// No parts yet, all on one line.
    pub fn stacked(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { layout: BarLayout::Stacked, ..Self::rows(title, unit) }
    }

    /// Sets the number at the right end.
    pub fn max(mut self, max: f64) -> Self {
        self.max = Some(max);
        self
    }

    /// Adds an item.
    pub fn item(mut self, item: BarItem) -> Self {
        self.items.push(item);
        self
    }

    /// The number at the right end; never zero or less, so that it can be divided by.
    pub(crate) fn scale(&self) -> f64 {
        let largest = self.items.iter().map(|item| finite(item.to)).fold(0.0, f64::max);
        let end = self.max.map_or(largest, finite).max(0.0);
        if end > 0.0 { end } else { 1.0 }
    }

    /// The figure of an item, as the caller wrote it or from its numbers.
    pub(crate) fn figure(&self, item: &BarItem) -> String {
        if let Some(value) = &item.value {
            return value.clone();
        }
        let (from, to) = (finite(item.from), finite(item.to));
        let number = match self.layout {
            BarLayout::Stacked => decimal(to - from),
            BarLayout::Rows if from == 0.0 || from == to => decimal(to),
            BarLayout::Rows => format!("{} to {}", decimal(from), decimal(to)),
        };
        if self.unit.is_empty() { number } else { format!("{number} {}", self.unit) }
    }

    /// The share of an item in the whole of a stack: `12.5 %`.
    pub(crate) fn share(&self, item: &BarItem) -> String {
        let percent = (finite(item.to) - finite(item.from)) / self.scale() * 100.0;
        if percent > 0.0 && percent < 0.05 { "< 0.1 %".to_owned() } else { format!("{percent:.1} %") }
    }

    /// Where an item starts and ends as fractions of the whole, each in 0..=1 and in order.
    pub(crate) fn span(&self, item: &BarItem) -> (f64, f64) {
        let scale = self.scale();
        let from = (finite(item.from) / scale).clamp(0.0, 1.0);
        let to = (finite(item.to) / scale).clamp(0.0, 1.0);
        (from.min(to), from.max(to))
    }
}

impl BarItem {
    /// A quantity from zero.
    pub fn new(label: impl Into<String>, to: f64) -> Self {
        Self::range(label, 0.0, to)
    }

    /// A quantity between two numbers.
    pub fn range(label: impl Into<String>, from: f64, to: f64) -> Self {
        Self { label: label.into(), from, to, value: None, tone: Tone::Plain, note: None }
    }

    /// Sets the tone.
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// Writes the figure.
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Adds a remark.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

/// At most two decimals, without trailing zeros.
pub(crate) fn decimal(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_computed_unless_given() {
        let bars = Bars::rows("", "%");
        assert_eq!(bars.figure(&BarItem::new("", 7.5)), "7.5 %");
        assert_eq!(bars.figure(&BarItem::range("", 10.0, 20.0)), "10 to 20 %");
        assert_eq!(bars.figure(&BarItem::new("", 0.0).value("not reported")), "not reported");
        assert_eq!(Bars::stacked("", "GiB").figure(&BarItem::range("", 1.0, 3.126)), "2.13 GiB");
        assert_eq!(Bars::rows("", "").figure(&BarItem::new("", 100.0)), "100");
    }

    #[test]
    fn numbers_out_of_range_stay_inside_the_bar() {
        let bars = Bars::rows("", "%").max(f64::NAN);
        for (from, to) in [(f64::NAN, 1.0), (f64::NEG_INFINITY, f64::INFINITY), (5.0, -3.0), (-1e308, 1e308)] {
            let (start, end) = bars.span(&BarItem::range("", from, to));
            assert!((0.0..=1.0).contains(&start) && (start..=1.0).contains(&end), "{from} {to} -> {start} {end}");
        }
        assert_eq!(bars.scale(), 1.0);
        assert_eq!(Bars::rows("", "").item(BarItem::new("", 8.0)).scale(), 8.0);
    }

    #[test]
    fn a_share_that_rounds_to_zero_is_not_shown_as_zero() {
        let bars = Bars::stacked("", "MiB").max(100_000.0);
        assert_eq!(bars.share(&BarItem::new("", 4.0)), "< 0.1 %");
        assert_eq!(bars.share(&BarItem::new("", 0.0)), "0.0 %");
        assert_eq!(bars.share(&BarItem::new("", 12_500.0)), "12.5 %");
    }
}
