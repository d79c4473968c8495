/// What an attempt's end means: the one rule for all destinations. Pipelines say what they heard; this decides whether it is
/// about the file, about the destination, or tells nothing of either.
///
/// * An answer that is not in the service's own form never ends a file.
/// * A refusal about the object itself is the file's own, however many files hear it.
/// * Any other refusal ends a file when it hears it again after the destination has shown that it is well: by another
///   delivery, or a probe. So does the last of a file's attempts. Two files in a row with the same one are an outage.
package enum FailureClassifier {
    package enum Ruling: Sendable, Equatable {
        /// The file's own: it ends, as failed.
        case file
        /// Something passing: the attempt counts.
        case retry
        /// The file's own or everybody's: others and a probe tell.
        case refusal
        /// The destination's: no attempt counts.
        case outage
        /// The same, by an answer of something else than the service; whatever only one file hears of that kind, it waits.
        case stranger
        /// An outage that lasts until the credentials change.
        case credentials
        /// Whether what was asked for was done is not known: it is looked for before it is asked for again.
        case unknownDelivered
        /// Neither the file's nor the destination's: cancelled, or another source than was admitted.
        case own
    }

    /// - Parameter isLast: whether the attempt was the last that the file has.
    package static func ruling(_ error: DeliveryError, isLast: Bool = false) -> Ruling {
        switch error.verdict {
        case .cancelled, .sourceChanged, .sourceGone: .own
        // A firewall may object to what is in one file; a login that a proxy asks for is everybody's.
        case .credentials: error.heard == Heard(403, .foreign) ? .stranger : .credentials
        case .outage: isStrange(error) ? .stranger : .outage
        case .giveUp: error.heard.map { refused($0) } ?? .file
        case .retry: passing(error, isLast)
        }
    }

    /// The same for a step that makes the file visible at its destination, or begins work that is paid for.
    package static func ruling(ofCommit error: DeliveryError) -> Ruling {
        error.heard.map(mayBeDone) ?? false ? .unknownDelivered : ruling(error)
    }

    /// Whether the step may have been done that was answered so. What a service refuses in its own form it has not done; of
    /// what another answers in its place, and of a server that failed, nobody knows.
    package static func mayBeDone(_ heard: Heard) -> Bool {
        switch heard.word {
        case .foreign: !(300..<400).contains(heard.status)
        case .passing: heard.status >= 500
        case .object, .everybody, .credentials, .refusal: false
        }
    }

    private static func isStrange(_ error: DeliveryError) -> Bool {
        error.heard.map { $0.word == .foreign && !$0.passes } ?? false
    }

    private static func refused(_ heard: Heard) -> Ruling {
        switch heard.word {
        case .object: .file
        case .everybody: .outage
        case .credentials: .credentials
        case .foreign: heard.passes ? .refusal : .stranger
        case .refusal, .passing: .refusal
        }
    }

    private static func passing(_ error: DeliveryError, _ isLast: Bool) -> Ruling {
        switch error.heard?.word {
        case .everybody: .outage
        case .foreign where isStrange(error): .stranger
        case nil: isLast && error.code == .serverError ? .refusal : .retry
        default: isLast ? .refusal : .retry
        }
    }
}
