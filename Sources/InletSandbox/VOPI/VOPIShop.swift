import Foundation
import InletCore
import Synchronization
import SystemPackage

/// Everything behind the calls: the store, the table of jobs, the logins and the credits.
///
/// The work of a job is done by whoever moves it, within the lock: pictures are small, and nothing waits for them.
final class VOPIShop: Sendable {
    struct State: Sendable {
        var rules: VOPIRules
        var credits: Int
        var logins = VOPILogins()
        /// Oldest first.
        var jobs: [VOPIJob] = []
        var videos: [VOPISandbox.Video] = []
        var keyUses = 0
        var tally = VOPISandbox.Tally()

        func index(of id: String) throws(VOPIRefusal) -> Int {
            guard let index = jobs.firstIndex(where: { $0.id == id }) else { throw .notFound(job: id) }
            return index
        }

        var voice: VOPIVoice { VOPIVoice(rules) }
    }

    let store: ObjectStore
    let signer: RequestSigner
    let clock: @Sendable () -> WallTime
    let state: Mutex<State>

    init(directory: FilePath, credits: Int, rules: VOPIRules, clock: @escaping @Sendable () -> WallTime) throws {
        store = try ObjectStore(directory: directory)
        signer = RequestSigner(secret: try SigningSecret.load(from: directory))
        self.clock = clock
        state = Mutex(State(rules: rules, credits: credits))
    }

    var rules: VOPIRules {
        get { state.withLock { $0.rules } }
        set { state.withLock { $0.rules = newValue } }
    }

    var credits: Int {
        get { state.withLock { $0.credits } }
        set { state.withLock { $0.credits = newValue } }
    }

    var tally: VOPISandbox.Tally { state.withLock { $0.tally } }
    func videos() -> [VOPISandbox.Video] { state.withLock { $0.videos } }

    func jobs() -> [VOPISandbox.Job] {
        let now = clock()
        return state.withLock { state in
            for index in state.jobs.indices { keepTime(index, &state, now: now) }
            return state.jobs.map { job in
                VOPISandbox.Job(
                    id: job.id, videoURL: job.videoURL, status: job.status(state.voice.progress),
                    step: job.step.rawValue, received: job.received, config: job.config, callbackURL: job.callbackURL,
                    error: job.error, failures: job.failures,
                    isCharged: job.isCharged)
            }
        }
    }

    func pictures(of id: String) -> [VOPISandbox.Picture] {
        state.withLock { $0.jobs.first { $0.id == id }?.pictures ?? [] }
    }

    // MARK: Logins

    func signIn() -> VOPISandbox.Session {
        let now = clock()
        return state.withLock { $0.logins.signIn($0.rules, now: now) }
    }

    func expireAccessTokens() { state.withLock { $0.logins.endRound() } }
    func revokeRefreshTokens() { state.withLock { $0.logins.revokeAll() } }

    func check(access token: String) throws(VOPIRefusal) {
        let now = clock()
        let (logins, rules) = state.withLock { ($0.logins, $0.rules) }
        guard !rules.isDatabaseDown else {
            throw .bare(
                401, code: "ACCESS_TOKEN_INVALID",
                message: "Access token is invalid: connect ECONNREFUSED 127.0.0.1:5432")
        }
        try logins.check(access: token, rules, now: now)
    }

    func admitRefresh(userAgent: String) throws(VOPIRefusal) -> (left: Int, reset: Int) {
        let now = clock()
        return try state.withLock { state throws(VOPIRefusal) in
            try state.logins.admit(userAgent: userAgent, limit: state.rules.refreshLimit, now: now)
        }
    }

    func refresh(_ token: String) throws(VOPIRefusal) -> VOPISandbox.Session {
        let now = clock()
        return try state.withLock { state throws(VOPIRefusal) in
            guard !state.rules.isDatabaseDown else { throw .unauthorized("connect ECONNREFUSED 127.0.0.1:5432") }
            let session = try state.logins.refresh(token, state.rules, now: now)
            state.tally.refreshes += 1
            return session
        }
    }

    // MARK: Videos

    func countPresign() { state.withLock { $0.tally.presigns += 1 } }

    func keep(_ object: StoredObject, publicURL: String) {
        state.withLock { state in
            state.tally.puts += 1
            let puts = 1 + (state.videos.last { $0.key == object.key }?.puts ?? 0)
            state.videos.removeAll { $0.key == object.key }
            state.videos.append(
                VOPISandbox.Video(
                    key: object.key, publicURL: publicURL, size: object.size, sha256: object.sha256,
                    contentType: object.contentType, puts: puts))
        }
    }
}
