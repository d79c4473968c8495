import InletCore

/// One job and how it walks: a value; what its steps need of the world is done by the shop, which reports back.
struct VOPIJob: Sendable {
    /// Where it is, in order.
    enum Step: String, Sendable, CaseIterable {
        case waiting
        case downloading
        case extracting
        case scoring
        case classifying
        case extractingProduct = "extracting_product"
        case generating
        case completed

        var percentage: Int {
            switch self {
            case .waiting: 0
            case .downloading: 5
            case .extracting: 20
            case .scoring: 40
            case .classifying: 60
            case .extractingProduct: 68
            case .generating: 81
            case .completed: 100
            }
        }
    }

    /// What the shop does for a step.
    enum Work: Sendable, Equatable {
        /// The video must be there.
        case find
        case charge
        case makePictures
        case fail(String)
    }

    /// As the table of jobs has it.
    enum Stored: String, Sendable {
        case pending
        case failed
        case cancelled
        case completed
    }

    /// Tries that a job has.
    private static let tries = 3

    let id: String
    /// The body that asked for it.
    let received: SandboxJSON
    let videoURL: String
    let config: SandboxJSON
    let callbackURL: String?
    let outcome: VOPIRules.Outcome
    let created: WallTime
    private(set) var updated: WallTime
    private(set) var completed: WallTime?
    private(set) var stored = Stored.pending
    private(set) var step = Step.waiting
    private(set) var error: String?
    private(set) var failures = 0
    /// Nothing moves it any more.
    private(set) var isOver = false
    var isCharged = false
    /// When the pace `clock` moved it last.
    var moved: WallTime
    var pictures: [VOPISandbox.Picture] = []
    var metadata: SandboxJSON?

    init(id: String, _ message: CreateJobMessage, outcome: VOPIRules.Outcome, now: WallTime) {
        (self.id, received) = (id, message.received)
        (videoURL, config, callbackURL) = (message.videoURL, message.config, message.callbackURL)
        self.outcome = outcome
        (created, updated, moved) = (now, now, now)
    }

    /// No worker will ever take it.
    var isStuck: Bool { outcome == .neverRuns && stored == .pending }

    /// Goes to the next step; what that needs, if anything. A failure met there is told by `fail`.
    mutating func advance() -> Work? {
        guard !isOver else { return nil }
        switch step {
        case .waiting:
            // A worker passes over what was cancelled in the queue.
            if stored == .cancelled {
                isOver = true
                return nil
            }
            if isStuck { return nil }
            step = .downloading
            return .find
        case .downloading:
            step = .extracting
            return .charge
        case .extracting: step = .scoring
        case .scoring: step = .classifying
        case .classifying:
            if case .fails(let times, let error) = outcome, failures < times { return .fail(error) }
            step = .extractingProduct
        case .extractingProduct: step = .generating
        case .generating: return .makePictures
        case .completed: isOver = true
        }
        return nil
    }

    /// A try has ended; the next one follows, if there is one.
    mutating func fail(_ reason: String, now: WallTime) {
        failures += 1
        (stored, error, updated) = (.failed, reason, now)
        step = .waiting
        isOver = failures >= Self.tries
    }

    /// Done, whatever was stored before: a cancel does not stop a job that runs.
    mutating func complete(_ pictures: [VOPISandbox.Picture], metadata: SandboxJSON?, now: WallTime) {
        (self.pictures, self.metadata) = (pictures, metadata)
        (stored, step, updated, completed, isOver) = (.completed, .completed, now, now, true)
    }

    mutating func cancel(now: WallTime) {
        (stored, updated) = (.cancelled, now)
    }

    /// What a client is told.
    func status(_ progress: VOPIRules.Progress) -> String {
        guard progress != .hidden, !isOver, step != .waiting else { return stored.rawValue }
        return step.rawValue
    }
}
