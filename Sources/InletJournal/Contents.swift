package import InletCore
package import SystemPackage

/// The delivery that brought a content to a destination first.
package struct Original: Sendable, Equatable {
    package var job: Int64
    /// The whole path of its file, as it was admitted.
    package var path: FilePath
    package var proof: Proof

    /// The proof for a file of the same content: where it is there already, and whose work that was. What lets a person
    /// undo the delivery stays with the first.
    package var link: Proof {
        var link = proof
        link.keepsakes = nil
        link.details = (proof.details ?? [:]).merging([Proof.sameAsName: String(job)]) { $1 }
        return link
    }
}

/// What is asked of the journal about a content: has it been brought to these destinations?
package struct ContentQuestion: Sendable, Codable {
    package var digest: Digest
    package var size: Int64
    package var route: String
    package var fields: [String: String]
    package var destinations: [String]

    package init(digest: Digest, size: Int64, route: String, fields: [String: String], destinations: [String]) {
        self.digest = digest
        self.size = size
        self.route = route
        self.fields = fields
        self.destinations = destinations
    }
}

extension Journal {
    /// A content that a delivery is to bring to a destination.
    struct Wanted {
        var delivery: Int64?
        var destination: String
        var digest: [UInt8]
        var size: Int64
        var route: String?
        var fields: [String: String]

        init(_ question: ContentQuestion, _ destination: String) {
            self.destination = destination
            (digest, size, route) = (question.digest.bytes, question.size, question.route)
            fields = question.fields
        }

        /// nil where the content is not known.
        init?(_ file: FileRow, _ row: DeliveryRow) {
            guard let digest = file.digests.sha256, row.closes == nil else { return nil }
            (delivery, destination, fields) = (row.id, row.destination, row.fields)
            (self.digest, size, route) = (digest.bytes, file.identity.size, file.route)
        }

        /// nil where the content is not known, or to be sent whoever has it.
        init?(_ plan: Plan, _ step: DeliverySteps.Step, size: Int64) {
            guard plan.dedupe.covers(isRegistration: step.after != nil), let digest = plan.digests.sha256 else {
                return nil
            }
            (destination, self.digest, self.size) = (step.destination, digest.bytes, size)
            (route, fields) = (plan.route, plan.with)
        }
    }
}

extension DuplicateRule {
    /// Whether a delivery asks for the content first. What is registered under `link` is registered again: it is
    /// another name for the same bytes.
    func covers(isRegistration: Bool) -> Bool { self == .skip || self == .link && !isRegistration }
}

extension [Digest] {
    package var sha256: Digest? { first { $0.algorithm == .sha256 } }
}
