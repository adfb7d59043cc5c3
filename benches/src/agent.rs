//! What an agent's effect costs in a scope that holds many, over one that holds few.

use idempotency_agent::{EffectError, Ledger, Outcome};
use idempotency_core::LedgerStore;
use tokio::time::Instant;

use crate::{
    statistics::{median, quantile},
    stores::BoxError,
    table::{Table, quotient},
};

const FEW: u32 = 10;
const MANY: u32 = 5_000;
const ROUNDS: u32 = 15;

/// Effects that one round asks for in each scope, and then once more. As few as are there: a short scope stays short.
const ASKED: u32 = 10;

/// How an effect is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    First,
    Again,
}

/// Prints how long an effect takes on `store` that is done, and one that was done before, in a scope of ten effects and in
/// one of five thousand.
///
/// # Errors
/// An effect was not done, or not known to be: then something else would be measured.
pub async fn compare<S: LedgerStore>(name: &str, store: S) -> Result<(), BoxError> {
    let ledger = Ledger::new(store);
    let scope = |number: u32| format!("bench {} {number}", std::process::id());
    let long = scope(0);
    each(&ledger, &long, 0..MANY, Asked::First).await?;
    let mut samples = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        let short = scope(round + 1);
        each(&ledger, &short, 0..FEW, Asked::First).await?;
        let (after_few, after_many) = (FEW, MANY + round * ASKED);
        for (asked, [few, many]) in [(Asked::First, [0, 1]), (Asked::Again, [2, 3])] {
            samples[few].push(each(&ledger, &short, after_few..after_few + ASKED, asked).await?);
            samples[many].push(each(&ledger, &long, after_many..after_many + ASKED, asked).await?);
        }
    }
    let mut table = Table::new(&[name, "among 10, us", "among 5000, us", "of the first", "quartiles"]);
    for (what, [few, many]) in [("done", [0, 1]), ("done before", [2, 3])] {
        let shares: Vec<f64> =
            samples[many].iter().zip(&samples[few]).map(|(many, few)| many / few).collect();
        table.push(vec![
            what.into(),
            format!("{:.0}", median(&samples[few])),
            format!("{:.0}", median(&samples[many])),
            quotient(median(&shares), 1.0),
            format!("{:.2}..{:.2}", quantile(&shares, 0.25), quantile(&shares, 0.75)),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// Asks for these effects one after the other, and says how long each took on average, in microseconds.
async fn each<S: LedgerStore>(
    ledger: &Ledger<S>,
    scope: &str,
    numbers: std::ops::Range<u32>,
    asked: Asked,
) -> Result<f64, BoxError> {
    let (begun, count) = (Instant::now(), f64::from(numbers.end - numbers.start));
    for number in numbers {
        let effect = ledger.effect(scope, "refund").identity(&number);
        let outcome = effect.execute(|_| async move { Ok::<_, EffectError>(number) }).await?;
        let is_as_asked = match asked {
            Asked::First => matches!(outcome, Outcome::Executed { .. }),
            Asked::Again => matches!(outcome, Outcome::Replayed(value) if value == number),
        };
        if !is_as_asked {
            return Err(
                format!("effect {number} of {scope}, asked for {asked:?}, was {}", outcome.name()).into()
            );
        }
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / count)
}
