internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The JSON object that receivers read, the same at every try.
struct NotificationText: Sendable {
    /// Unique among the notifications of all journals.
    let id: String
    let event: String
    let body: [UInt8]

    /// The most files of a batch that are listed by name.
    static let mostFiles = 1000

    /// - Parameters:
    ///   - identity: the journal's.
    ///   - payload: the content that `notice` does not hold itself.
    init(_ notice: QueuedNotification, identity: String, host: String) {
        let key =
            switch notice.event {
            case .delivered, .failed, .rejected: "file"
            case .batchDone: "batch"
            case .destinationDown, .destinationUp: "destination"
            case .volumeDone, .volumeProblem: "volume"
            case .rootPaused, .rootQuiet, .rootRecovered: "folder"
            case .agentSilent: "agent"
            }
        self.init(
            id: "inlet-\(identity)-\(notice.id)", event: notice.event.rawValue, at: notice.createdAt, host: host, key,
            notice.payload)
    }

    private init(id: String, event: String, at time: WallTime, host: String, _ key: String, _ payload: [UInt8]) {
        var object = JSONLine()
        object.add("id", id)
        object.add("event", event)
        object.add("at", time.rfc3339)
        object.add("host", host)
        object.add(key, json: payload)
        (self.id, self.event, body) = (id, event, object.finished)
    }

    /// A test notification, which shows whether it reaches a receiver.
    static func test(_ receiver: String, host: String, at now: WallTime) -> NotificationText {
        var object = JSONLine()
        object.add("receiver", receiver)
        return NotificationText(
            id: "inlet-test-\(now.milliseconds)", event: "test", at: now, host: host, "test", object.finished)
    }

    /// The state of a card, for its lamp.
    static func card(_ fields: JSONLine, host: String, at now: WallTime) -> NotificationText {
        NotificationText(
            id: "inlet-card-\(now.milliseconds)", event: "card", at: now, host: host, "card", fields.finished)
    }

    // MARK: - Payloads

    static func destination(_ name: String, state: String, reason: String?, nextProbe: WallTime?) -> [UInt8] {
        var object = JSONLine()
        object.add("name", name)
        object.add("state", state)
        if let reason { object.add("reason", DisplayText.escape(reason)) }
        if let nextProbe { object.add("next_probe", nextProbe.rfc3339) }
        return object.finished
    }

    static func volume(_ end: VolumeReport) -> [UInt8] {
        var object = JSONLine()
        object.add("name", DisplayText.escape(end.volume))
        object.add("path", end.root.display)
        object.add("state", end.isSafe ? "safe" : "problem")
        object.add("verdict", end.verdict)
        object.add("files", Int64(end.files))
        object.add("bytes", end.bytes)
        object.add("ignored", Int64(end.ignored))
        object.add("others", Int64(end.others))
        object.add("text", DisplayText.escape("\(end.volume): \(end.headline)"))
        let labels = [("roll", end.labels.roll), ("camera", end.labels.camera), ("operator", end.labels.operator)]
        for case (let name, let label?) in labels { object.add(name, DisplayText.escape(label)) }
        if let link = end.link { object.add("link", link) }
        object.add("lines", end.lines.map { DisplayText.escape($0.text) })
        return object.finished
    }

    static func pausedRoot(_ root: FilePath, reason: String) -> [UInt8] {
        var object = JSONLine()
        object.add("path", root.display)
        object.add("state", "paused")
        object.add("reason", DisplayText.escape(reason))
        return object.finished
    }

    /// - Parameter expect: nil where files come again.
    static func quietRoot(_ root: FilePath, since: WallTime, expect: Duration?) -> [UInt8] {
        var object = JSONLine()
        object.add("path", root.display)
        object.add("state", expect == nil ? "active" : "quiet")
        object.add("since", since.rfc3339)
        if let expect { object.add("expect", DurationText.format(expect)) }
        return object.finished
    }

    static func silentAgent(_ name: String, since: String) -> [UInt8] {
        var object = JSONLine()
        object.add("name", name)
        object.add("state", "silent")
        object.add("since", since)
        return object.finished
    }

    /// - Parameter jobs: the batch's files, undelivered ones first; of a large batch not all.
    static func batch(_ batch: Batch, _ jobs: [Job]) -> [UInt8] {
        var object = JSONLine()
        object.add("batch", batch.id)
        object.add("name", batch.name)
        object.add("path", (batch.unit.map { batch.root.pushing($0) } ?? batch.root).display)
        object.add("route", batch.route)
        object.add("outcome", batch.outcome)
        object.add("state", batch.state.rawValue)
        let files = batch.counts.values.reduce(0, +)
        object.add("files", Int64(files))
        var counts = JSONLine()
        for (state, count) in batch.counts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            counts.add(state.rawValue, Int64(count))
        }
        object.add("counts", counts)
        object.add("created_at", batch.createdAt.rfc3339)
        if let ended = batch.endedAt { object.add("ended_at", ended.rfc3339) }
        object.add("delivered", jobs.filter { $0.file.state.isWhereItBelongs }.map(file))
        object.add("not_delivered", jobs.filter { !$0.file.state.isWhereItBelongs }.map(file))
        if files > jobs.count { object.add("not_listed", Int64(files - jobs.count)) }
        return object.finished
    }

    private static func file(_ job: Job) -> JSONLine {
        let file = job.file
        var object = JSONLine()
        object.add("job", file.id)
        object.add("path", file.path.display)
        object.add("size", file.identity.size)
        object.add("state", file.state.rawValue)
        if let code = file.code { object.add("code", code.rawValue) }
        if let reason = file.reason { object.add("reason", reason) }
        let urls = job.deliveries.compactMap { $0.proof?.url }
        if !urls.isEmpty { object.add("urls", urls) }
        return object
    }
}

extension Batch {
    /// How it ended, in one word.
    var outcome: String { Self.outcome(counts) }

    /// A changed file counts as its successor.
    static func outcome(_ counts: [FileState: Int]) -> String {
        let counts = counts.filter { $0.key != .superseded && $0.value > 0 }
        let good = counts.filter { $0.key.isWhereItBelongs }.count
        return good == counts.count ? "complete" : good > 0 ? "partial" : "failed"
    }
}

extension FileState {
    /// Whether its destinations have it, from this file or an equal one.
    var isWhereItBelongs: Bool { self == .delivered || self == .duplicate }
}

/// The environment of a program, for use without JSON. Paths are bytes, as on the disk.
struct NotificationEnvironment: Sendable, Equatable {
    var path: [UInt8]?
    var state: String?
    var route: String?
    var key: String?
    var url: String?
    var destination: String?
    /// A removable volume's name.
    var volume: String?
    var cardState: String?
    /// A sentence for people.
    var text: String?

    init() {}

    /// Of several deliveries the first with a proof.
    init(_ job: Job) {
        path = Array(job.file.fullPath.bytes)
        state = job.file.state.rawValue
        route = job.file.route
        let delivery = job.deliveries.first { $0.proof != nil } ?? job.deliveries.first
        key = delivery?.proof?.key ?? delivery?.key
        url = delivery?.proof?.url
        destination = delivery?.destination
    }

    init(_ batch: Batch) {
        path = Array((batch.unit.map { batch.root.pushing($0) } ?? batch.root).bytes)
        state = batch.outcome
        route = batch.route
    }

    /// - Parameter payload: the notification about a destination, a removable volume or a watched folder; it is stored
    ///   nowhere else.
    init(_ event: NotificationEvent, _ payload: [UInt8]) {
        // Without it the program gets fewer variables; its input is complete.
        guard let said = JSON.object(payload) else { return }
        path = (said["path"]?.string).map { Array($0.utf8) }
        state = event == .volumeDone ? "done" : said["state"]?.string
        switch event {
        case .volumeDone, .volumeProblem: volume = said["name"]?.string
        case .destinationDown, .destinationUp: destination = said["name"]?.string
        default: break
        }
    }

    /// Of the agent's environment only PATH, HOME and the language: others may hold credentials.
    func environment(_ event: String) -> [(name: String, value: [UInt8])] {
        let places: [(String, String?)] = [("PATH", ProgramFinder.path), ("HOME", ProcessSetup.homeDirectory?.string)]
        let own: [(ChildVariable, String?)] = [
            (.language, ProcessSetup.environment("LANG") ?? "C.UTF-8"), (.event, event), (.state, state),
            (.route, route), (.key, key), (.url, url), (.destination, destination), (.volume, volume),
            (.cardState, cardState), (.text, text),
        ]
        let texts = (places + own.map { ($0.rawValue, $1) }).compactMap { name, value in
            value.map { (name, Array($0.utf8)) }
        }
        return texts + (path.map { [(ChildVariable.path.rawValue, $0)] } ?? [])
    }
}
