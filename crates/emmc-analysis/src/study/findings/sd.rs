//! SD cards: the speed that their classes promise.

use emmc_regs::CardKind;
use emmc_regs::scr::Scr;
use emmc_regs::ssr::{self, Ssr};

use super::{Facts, boot};
use crate::finding::{Finding, Severity};

pub(super) fn find(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    findings.extend(boot::whole_card(facts, CardKind::Sd));
    let Some(ssr) = facts.card.ssr.map(Ssr) else { return };
    findings.extend(application_class(&ssr));
    findings.extend(speed_class(&ssr));
    findings.extend(one_line(facts, &ssr));
}

fn application_class(ssr: &Ssr) -> Option<Finding> {
    match ssr.app_perf_class()? {
        0 => Some(
            Finding::new(
                Severity::Notice,
                "sd-no-application-class",
                "The card promises nothing for random access: it has no application performance class",
            )
            .evidence("SSR APP_PERF_CLASS = 0")
            .advice(
                "for a root filesystem use class A1 or better, or measure this card: it may be faster than it promises",
            ),
        ),
        2 => Some(
            Finding::new(
                Severity::Notice,
                "sd-a2-needs-queue",
                "The card is class A2, which holds only with its cache and command queue in use",
            )
            .evidence("SSR APP_PERF_CLASS = 2")
            .advice("most hosts use neither: measure the card, and expect no more than A1 without them")
            .source("raspberrypi/linux issues 6349 and 6561: queues of some A2 cards fail"),
        ),
        _ => None,
    }
}

fn speed_class(ssr: &Ssr) -> Option<Finding> {
    let class = ssr.speed_class().filter(|class| *class < 10)?;
    let faster = ssr.uhs_speed_grade().is_some_and(|grade| grade > 0)
        || ssr.video_speed_class().is_some_and(|class| class >= 10);
    if faster {
        return None;
    }
    let what = match class {
        0 => "The card promises no sustained write speed".to_owned(),
        class => format!("The card promises a sustained write speed of only {class} MB/s"),
    };
    Some(
        Finding::new(Severity::Notice, "sd-slow-class", what)
            .evidence(format!("SSR SPEED_CLASS: {class}"))
            .advice("measure the card before you rely on more"),
    )
}

/// The card uses one data line though it has four.
fn one_line(facts: &Facts<'_>, ssr: &Ssr) -> Option<Finding> {
    let four = Scr(facts.card.scr?).has_bus_width(4);
    if !four || ssr::DAT_BUS_WIDTH.is_set(&ssr.0) {
        return None;
    }
    Some(
        Finding::new(Severity::Warning, "sd-one-line", "The card was used with one of its four data lines")
            .evidence("SSR DAT_BUS_WIDTH = 0 (1 line)")
            .evidence("SCR SD_BUS_WIDTHS: 4 lines offered")
            .advice("check bus-width in the device tree, and whether the board connects all lines"),
    )
}
