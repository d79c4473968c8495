internal import Foundation
package import InletCore
internal import InletJournal
package import InletLinux
package import InletPipelines
internal import SystemPackage

/// One receiver of notices, and how it is told.
package struct NoticeOutlet: Sendable {
    package let settings: NotifySettings
    private let webhook: Webhook?
    private let pool: BlockingPool

    /// sysexits.h: EX_TEMPFAIL.
    private static let tryAgainLater: Int32 = 75
    /// A program that fails is wrong rather than busy.
    private static let programTries = 5

    /// - Parameter pool: where programs are waited for, each on a thread of its own.
    package init(_ settings: NotifySettings, webhook: Webhook?, pool: BlockingPool) {
        self.settings = settings
        self.webhook = webhook
        self.pool = pool
    }

    /// Sends a notice of nothing, once.
    package func test(at now: WallTime) async -> NoticeOutcome {
        await send(.test(settings.name, host: ProcessSetup.hostName, at: now), NoticeDetails(), at: now)
    }

    func send(_ text: NoticeText, _ details: NoticeDetails, at now: WallTime) async -> NoticeOutcome {
        switch settings.receiver {
        case .webhook:
            guard let webhook else { return .unanswered(after: nil, reason: "no address") }
            return await webhook.post(text.body, id: text.id, at: now)
        case .exec(let words):
            // A line: what reads lines takes one without an end for none.
            let child = ChildProcess(
                words, environment: details.environment(text.event), input: text.body + [UInt8(ascii: "\n")],
                timeout: settings.timeout)
            do throws(SystemError) {
                return Self.outcome(try await child.run(on: pool))
            } catch {
                return .unanswered(after: nil, reason: "\(error)")
            }
        }
    }

    static func outcome(_ ended: ChildProcess.Outcome) -> NoticeOutcome {
        let said = DisplayText.escape(ended.errors.suffix(300))
        let tail = said.isEmpty ? "" : ": \(said)"
        return switch ended.end {
        case .exited(0): .taken
        case .exited(tryAgainLater): .unanswered(after: nil, reason: "the program asks for another try\(tail)")
        case .exited(let code): .refused(reason: "the program ended with \(code)\(tail)", tries: programTries)
        case .signalled(let signal):
            .refused(reason: "the program was ended by signal \(signal)\(tail)", tries: programTries)
        case .timedOut: .refused(reason: "the program took too long and was ended\(tail)", tries: programTries)
        case .stuck:
            .refused(reason: "the program took too long and could not be ended\(tail)", tries: programTries)
        case .cancelled: .cancelled
        }
    }
}

/// What a program finds in its environment, without reading JSON. Paths are bytes, as they are on the disk.
struct NoticeDetails: Sendable, Equatable {
    var path: [UInt8]?
    var state: String?
    var route: String?
    var key: String?
    var url: String?
    var destination: String?
    /// A removable volume's name.
    var volume: String?

    init() {}

    /// Of several deliveries the first that has its bytes there.
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
        state = BatchOutcome(batch.counts).rawValue
        route = batch.route
    }

    /// - Parameter payload: what the notice says of a destination (`NoticeText.destination`): it is kept nowhere else.
    init(destination payload: [UInt8]) {
        let said = try? JSONDecoder().decode(Said.self, from: Data(payload))
        (destination, state) = (said?.name, said?.state)
    }

    /// - Parameter payload: what the notice says of a removable volume (`NoticeText.volume`).
    init(volume payload: [UInt8]) {
        let said = try? JSONDecoder().decode(SaidOfVolume.self, from: Data(payload))
        (volume, path) = (said?.name, said.map { Array($0.path.utf8) })
        state = "done"
    }

    /// - Parameter payload: what the notice says of a watched folder (`NoticeText.pausedRoot`).
    init(folder payload: [UInt8]) {
        let said = try? JSONDecoder().decode(SaidOfFolder.self, from: Data(payload))
        (path, state) = (said.map { Array($0.path.utf8) }, said?.state)
    }

    private struct SaidOfFolder: Decodable {
        var path: String
        var state: String
    }

    private struct Said: Decodable {
        var name: String
        var state: String
    }

    private struct SaidOfVolume: Decodable {
        var name: String
        var path: String
    }

    /// Nothing of our own environment but where programs and the home are, and the language: it may hold credentials.
    func environment(_ event: String) -> [(name: String, value: [UInt8])] {
        let own: [(String, String?)] = [
            ("PATH", ProgramSearch.path),
            ("HOME", ProcessSetup.homeDirectory?.string), ("LANG", ProcessSetup.environment("LANG") ?? "C.UTF-8"),
            ("INLET_EVENT", event), ("INLET_STATE", state), ("INLET_ROUTE", route), ("INLET_KEY", key),
            ("INLET_URL", url), ("INLET_DESTINATION", destination), ("INLET_VOLUME", volume),
        ]
        let texts = own.compactMap { name, value in value.map { (name, Array($0.utf8)) } }
        return texts + (path.map { [("INLET_PATH", $0)] } ?? [])
    }
}
