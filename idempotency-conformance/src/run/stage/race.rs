//! Many requests at one moment: each is sent but for its last byte, and then all last bytes follow at once.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use super::{Stage, TOLD, Trouble, lost};
use crate::{
    vector::Race,
    wire::{Answer, Lost},
};

impl Stage<'_> {
    pub(super) async fn race(&mut self, race: &Race) -> Result<(), Trouble> {
        let answers = self.released(race).await?;
        let mut wrong = BTreeSet::new();
        for answer in &answers {
            let before = self.wrong.len();
            self.judge("race", &race.each, answer);
            wrong.extend(self.wrong.drain(before..));
        }
        self.wrong.extend(wrong.into_iter().take(TOLD));
        let successes: Vec<&Answer> = answers.iter().filter(|answer| answer.is_success()).collect();
        if successes.len() < race.successes_at_least as usize {
            let (wanted, got) = (race.successes_at_least, successes.len());
            self.wrong.push(format!("race: expected {wanted} answers of success at least, got {got}"));
        }
        let bodies: BTreeSet<&[u8]> = successes.iter().map(|answer| answer.body.as_slice()).collect();
        if race.successes_agree && bodies.len() > 1 {
            let got = bodies.len();
            self.wrong
                .push(format!("race: expected one body in all answers of success, got {got} different ones"));
        }
        if let (Some(name), Some(winner)) = (&race.name, successes.first()) {
            self.answers.insert(name.clone(), (*winner).clone());
        }
        if self.wrong.is_empty() {
            return Ok(());
        }
        let wrong = std::mem::take(&mut self.wrong).join("; ");
        Err(Trouble::Broken { wrong })
    }

    async fn released(&self, race: &Race) -> Result<Vec<Answer>, Trouble> {
        let mut held = Vec::new();
        for entrant in &race.entrants {
            let message = self.message(self.request(&entrant.request)?);
            for _ in 0..entrant.parallel {
                let mut connection = self.open().await.map_err(lost("race"))?;
                connection.hold_back(&message).await.map_err(lost("race"))?;
                held.push((connection, message.clone()));
            }
        }
        let mut running: JoinSet<Result<Answer, Lost>> = JoinSet::new();
        for (mut connection, message) in held {
            running.spawn(async move { connection.release(&message).await });
        }
        let mut answers = Vec::new();
        while let Some(ended) = running.join_next().await {
            // Nobody aborts them.
            let Ok(answer) = ended else { continue };
            answers.push(answer.map_err(lost("race"))?);
        }
        Ok(answers)
    }
}
