internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// What an agent needs to deliver a file of a share and to dispose of its source, frozen at admission: `plan` of the
/// fleet's rows, as JSON. Agents may have other names for the same destinations.
struct PlacePlan: Codable, Sendable, Equatable {
    /// A delivery of the work. The first one has the key of the fleet; the others register the file behind it.
    struct Step: Codable, Sendable, Equatable {
        /// The destination's (`Destination.address`), the same for all agents.
        var address: String
        var key: String
    }

    var route: String
    var category: String
    var mediaType: String
    var fields: [String: String]
    var labels: [String: String]
    var policy: FilePolicy
    /// As `Priority.rank`.
    var priority: Int
    var steps: [Step]
    /// Of the source, as its admitting agent saw it: what was replaced since is not disposed of.
    var inode: UInt64

    private enum CodingKeys: String, CodingKey {
        case route, category, fields, labels, policy, priority, steps, inode
        case mediaType = "media_type"
    }

    /// One plan for each delivery that waits for no other, with those behind it; nil where a destination has no address.
    static func all(of file: FileAdmission, address: (String) -> String?) -> [PlacePlan]? { fatalError() }

    /// The admission of this work here; nil where a destination is not configured here.
    ///
    /// - Parameters:
    ///   - arrival: with the identity that the file has here.
    ///   - name: the local name of the destination at an address.
    func admission(
        of arrival: FoundFile, terms: AdmissionTerms, name: (String) -> String?
    ) -> FileAdmission? { fatalError() }
}

/// What is kept for a report after a loss: a row of `v1_again_admitted` with the destination's address instead of its
/// number.
struct PlaceRow: Codable, Sendable, Equatable {
    /// The path below the share.
    var name: [UInt8]
    var size: Int64
    var address: String
    var type: String
    var ref: Int64
    var key: String
    var plan: PlacePlan
}
