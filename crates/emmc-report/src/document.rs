use crate::{Bars, Finding, Lead, Picture};

/// The report of one command: a title and sections in reading order.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The main heading, such as the part and the command.
    pub title: String,
    /// One line below the title: the data source.
    pub subtitle: Option<String>,
    /// The answer, before everything else.
    pub lead: Option<Lead>,
    /// The sections, in reading order.
    pub sections: Vec<Section>,
}

/// A titled part of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The anchor in HTML: lower-case words joined by `-`, unique in the document.
    pub id: String,
    /// The heading.
    pub title: String,
    /// The content, in reading order.
    pub blocks: Vec<Block>,
    /// Whether it is detail: folded in HTML, omitted in text unless full output is requested.
    pub is_detail: bool,
}

/// One piece of content.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Running text.
    Paragraph(String),
    /// Names and their values, aligned.
    KeyValues(Vec<KeyValue>),
    /// Rows under column titles.
    Table(Table),
    /// Conclusions; the caller puts the most urgent first.
    Findings(Vec<Finding>),
    /// Conclusions on one line each in text, folded in HTML.
    Brief(Vec<Finding>),
    /// Quantities as horizontal bars.
    Bars(Bars),
    /// A chart in HTML, lines of text on a terminal.
    Chart(Chart),
    /// A drawing in HTML, a table on a terminal.
    Picture(Picture),
    /// Text to copy verbatim; never wrapped.
    Code {
        /// The language, such as `sh`; becomes a label in HTML.
        language: &'static str,
        /// The lines; the only text in which a line break is kept.
        text: String,
    },
    /// A remark, separate from the surrounding text.
    Note(Tone, String),
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The name.
    pub key: String,
    /// The value, with its unit.
    pub value: Cell,
    /// Its meaning or its source.
    pub note: Option<String>,
}

/// Rows under column titles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The columns, left to right.
    pub columns: Vec<Column>,
    /// The rows; missing cells are empty, extra cells have no title.
    pub rows: Vec<Vec<Cell>>,
    /// What the table shows, as one sentence.
    pub caption: Option<String>,
    /// Whether each row stays on one line of text: the last column is cut if it does not fit.
    pub one_line: bool,
}

/// A column's title and alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The title, with the unit when every cell shares it.
    pub title: String,
    /// Right for numbers that are compared down the column.
    pub align: Align,
    /// Whether text omits the column if a row would not fit on one line with it.
    pub optional: bool,
}

/// On which side the cells of a column line up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Words.
    #[default]
    Left,
    /// Numbers.
    Right,
}

/// A short text and its tone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text, with its unit.
    pub text: String,
    /// Its tone; adds nothing to the meaning of the text.
    pub tone: Tone,
}

/// Rating of a value; shown as colour, so never the only carrier of a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Worth a look.
    Notice,
    /// Wants attention.
    Warn,
    /// Wrong, or dangerous.
    Bad,
    /// Of less interest: unknown, reserved, not set.
    Muted,
}

/// A chart: drawn in HTML; text lines on a terminal, on paper and without scripts.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// A description, also for screen readers.
    pub description: String,
    /// A Vega-Lite specification with its data inline; colours, fonts and a width of the page are supplied by the
    /// renderer.
    pub spec: serde_json::Value,
    /// The same in words or aligned lines.
    pub text: Vec<String>,
}

impl Document {
    /// An empty document.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), subtitle: None, lead: None, sections: Vec::new() }
    }

    /// Adds an empty section and returns it, to be filled.
    pub fn section(&mut self, id: impl Into<String>, title: impl Into<String>) -> &mut Section {
        self.sections.push(Section::new(id, title));
        let last = self.sections.len() - 1;
        &mut self.sections[last]
    }
}

impl Section {
    /// An empty section.
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), blocks: Vec::new(), is_detail: false }
    }

    /// Adds a block.
    pub fn push(&mut self, block: impl Into<Block>) -> &mut Self {
        self.blocks.push(block.into());
        self
    }

    /// Adds running text.
    pub fn paragraph(&mut self, text: impl Into<String>) -> &mut Self {
        self.push(Block::Paragraph(text.into()))
    }

    /// Adds a remark.
    pub fn note(&mut self, tone: Tone, text: impl Into<String>) -> &mut Self {
        self.push(Block::Note(tone, text.into()))
    }

    /// Adds text to copy.
    pub fn code(&mut self, language: &'static str, text: impl Into<String>) -> &mut Self {
        self.push(Block::Code { language, text: text.into() })
    }
}

impl KeyValue {
    /// A name and its value, without a note.
    pub fn new(key: impl Into<String>, value: impl Into<Cell>) -> Self {
        Self { key: key.into(), value: value.into(), note: None }
    }

    /// Adds the meaning of the value.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

impl Table {
    /// Some of its columns, without a caption.
    pub(crate) fn only(&self, kept: &[usize]) -> Self {
        let row = |row: &Vec<Cell>| kept.iter().filter_map(|index| row.get(*index).cloned()).collect();
        let columns = kept.iter().filter_map(|index| self.columns.get(*index).cloned()).collect();
        Self { caption: None, columns, rows: self.rows.iter().map(row).collect(), ..self.clone() }
    }

    /// An empty table with these columns.
    pub fn new<T: Into<String>>(columns: impl IntoIterator<Item = (T, Align)>) -> Self {
        let columns =
            columns.into_iter().map(|(title, align)| Column { title: title.into(), align, optional: false }).collect();
        Self { columns, rows: Vec::new(), caption: None, one_line: false }
    }

    /// Adds a row.
    pub fn row<T: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = T>) -> &mut Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// Names the columns that text may omit.
    pub fn optional(mut self, titles: &[&str]) -> Self {
        self.columns.iter_mut().for_each(|column| column.optional |= titles.contains(&column.title.as_str()));
        self
    }

    /// Keeps each row on one line of text.
    pub fn one_line(mut self) -> Self {
        self.one_line = true;
        self
    }

    /// Sets the caption.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = Some(caption.into());
        self
    }
}

impl Cell {
    /// A text with a tone.
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text, Tone::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(text, Tone::Plain)
    }
}

impl From<Vec<KeyValue>> for Block {
    fn from(pairs: Vec<KeyValue>) -> Self {
        Self::KeyValues(pairs)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Vec<Finding>> for Block {
    fn from(findings: Vec<Finding>) -> Self {
        Self::Findings(findings)
    }
}

impl From<Bars> for Block {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}

impl From<Picture> for Block {
    fn from(picture: Picture) -> Self {
        Self::Picture(picture)
    }
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}
