/// How the VOPI sandbox behaves; may be changed while it runs, and counts from the next request on.
package struct VOPIRules: Sendable {
    /// Which of the two servers it is.
    package enum Generation: Sendable, Hashable {
        /// Before 2026-01-23: `x-api-key`, DELETE cancels, `config`, `progress` and `result` always read `{}`.
        case apiKey
        /// Bearer tokens, POST cancels, DELETE deletes.
        case bearer
    }

    /// How much of a running job is told.
    package enum Progress: Sendable, Hashable {
        /// `pending` and `{}` from start to end, as servers of the bearer generation do.
        case hidden
        /// The step is the status; `progress` stays `{}`, as older servers do.
        case status
        /// The step is the status, and `progress` holds step and percentage.
        case full
    }

    /// What moves jobs on.
    package enum Pace: Sendable, Hashable {
        /// Each question for a job moves it by so many of its steps before it is answered.
        case polls(steps: Int)
        /// Each step takes this long by the sandbox's clock.
        case clock(step: Duration)
        /// `advance` of the sandbox, and nothing else.
        case manual
    }

    /// How a job ends. Taken when the job is created.
    package enum Outcome: Sendable, Hashable {
        case completes
        /// So many tries end `failed` with this error, of the three there are; the next one completes, and leaves the
        /// error where it is.
        case fails(times: Int, error: String)
        /// `pending` for ever: as with an unknown stack.
        case neverRuns

        /// All three tries fail.
        package static func fails(_ error: String) -> Outcome { .fails(times: 3, error: error) }
    }

    /// What the results are called.
    package enum Names: Sendable, Hashable {
        case plain
        /// Frames, keys and versions whose names climb, are absolute, empty, long, doubled or hold control characters.
        case hostile
    }

    package var generation: Generation
    package var pace: Pace
    package var outcome: Outcome
    package var names: Names
    /// nil = what the generation tells.
    package var progress: Progress?
    /// Pictures that are frames of the video.
    package var frames: Int
    /// So many of the links are left out of `download-urls`, without a word.
    package var droppedLinks: Int
    /// Whether results carry product metadata.
    package var hasMetadata: Bool
    /// Whether `download-urls` says so, beside the call of their own.
    package var listsMetadata: Bool
    /// Every call that needs the database answers 401, `/ready` 503.
    package var isDatabaseDown: Bool
    /// The user was deleted.
    package var isUserGone: Bool
    /// Of access tokens, from their making on.
    package var accessLifetime: Duration
    package var refreshLifetime: Duration
    /// Calls of `refresh` in a minute by the clock, per User-Agent.
    package var refreshLimit: Int
    /// So many jobs may be created with the API key; nil = any number. Of the apiKey generation only.
    package var apiKeyUses: Int?

    package init(
        generation: Generation = .bearer, pace: Pace = .polls(steps: 1), outcome: Outcome = .completes,
        names: Names = .plain, progress: Progress? = nil, frames: Int = 3, droppedLinks: Int = 0,
        hasMetadata: Bool = true, listsMetadata: Bool = true, isDatabaseDown: Bool = false, isUserGone: Bool = false,
        accessLifetime: Duration = .seconds(900), refreshLifetime: Duration = .seconds(7 * 86_400),
        refreshLimit: Int = 30, apiKeyUses: Int? = nil
    ) {
        self.generation = generation
        self.pace = pace
        self.outcome = outcome
        self.names = names
        self.progress = progress
        self.frames = frames
        self.droppedLinks = droppedLinks
        self.hasMetadata = hasMetadata
        self.listsMetadata = listsMetadata
        self.isDatabaseDown = isDatabaseDown
        self.isUserGone = isUserGone
        self.accessLifetime = accessLifetime
        self.refreshLifetime = refreshLifetime
        self.refreshLimit = refreshLimit
        self.apiKeyUses = apiKeyUses
    }
}
