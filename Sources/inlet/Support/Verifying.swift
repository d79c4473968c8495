import InletCore
import InletDashboard
import InletPipelines
import Synchronization

/// Asks destinations about what was delivered to them, several questions at once.
struct Verifying: Sendable {
    /// What came of one question.
    struct Result: Sendable {
        enum Finding: Sendable {
            case answered(Verification)
            case unreachable(String)
        }

        let report: ProofReport
        let finding: Finding
    }

    private let types: [String: String]
    private let verifiers: [String: any DeliveryVerifying]
    private let readsBytes: Bool
    private let away = Away()

    private static let parallel = 8
    private static let tries = 3
    private static let waits = RetryPolicy(backoff: .milliseconds(200), maxBackoff: .seconds(2))

    init(_ destinations: [Destination], readsBytes: Bool) {
        types = Dictionary(uniqueKeysWithValues: destinations.map { ($0.name, $0.type) })
        verifiers = destinations.reduce(into: [:]) { $0[$1.name] = $1.pipeline as? any DeliveryVerifying }
        self.readsBytes = readsBytes
    }

    /// Asks about each; `take` gets the results as they come.
    func run(_ reports: [ProofReport], _ take: (Result) -> Void) async {
        var rest = reports[...]
        await withTaskGroup(of: Result.self) { group in
            func begin() {
                guard let report = rest.popFirst() else { return }
                group.addTask { Result(report: report, finding: await self.ask(report)) }
            }
            for _ in 0..<Self.parallel { begin() }
            for await result in group {
                take(result)
                begin()
            }
        }
    }

    private func ask(_ report: ProofReport) async -> Result.Finding {
        guard let proof = report.proof else {
            return .answered(.cannotTell("the journal's proof of it cannot be read"))
        }
        if proof.method == .carried {
            return .answered(.cannotTell("it went with its file and has no place of its own there"))
        }
        if let time = proof.details?["deleted"] {
            return .answered(.cannotTell("it was deleted there by a person, \(time)"))
        }
        guard let type = types[report.destination] else {
            return .answered(.cannotTell("no destination is called '\(report.destination)' any more"))
        }
        guard let verifier = verifiers[report.destination] else {
            return .answered(.cannotTell("destinations of type \(type) cannot be asked"))
        }
        let order = VerifyOrder(proof: proof, digests: report.digests, readsBytes: readsBytes)
        var tried = 0
        while true {
            // One that does not answer keeps nobody waiting for each of its files.
            if let why = away.reason(report.destination) { return .unreachable(why) }
            let error: DeliveryError
            switch await Self.answer(verifier, order) {
            case .success(let answer): return .answered(answer)
            case .failure(let failure): error = failure
            }
            tried += 1
            guard error.mayPass, tried < Self.tries else {
                if error.isAboutDestination { away.note(report.destination, "\(error)") }
                return .unreachable("\(error)")
            }
            var random = SystemRandomNumberGenerator()
            // It fails only when the command is cancelled, which ends the next try.
            try? await Task.sleep(for: Self.waits.delay(afterAttempt: tried, asked: nil, using: &random))
        }
    }

    private static func answer(
        _ verifier: any DeliveryVerifying, _ order: VerifyOrder
    ) async -> Swift.Result<Verification, DeliveryError> {
        do throws(DeliveryError) {
            return .success(try await verifier.verify(order))
        } catch {
            return .failure(error)
        }
    }

    /// Destinations that did not answer, and why.
    private final class Away: Sendable {
        private let reasons = Mutex<[String: String]>([:])

        func reason(_ name: String) -> String? { reasons.withLock { $0[name] } }
        func note(_ name: String, _ why: String) { reasons.withLock { $0[name] = why } }
    }
}

extension DeliveryError {
    fileprivate var mayPass: Bool {
        switch verdict {
        case .retry, .outage: true
        default: false
        }
    }

    /// Nothing that another object would change.
    fileprivate var isAboutDestination: Bool {
        switch verdict {
        case .outage, .credentials: true
        default: false
        }
    }
}
