internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// All that an agent needs to deliver a file of a share and to dispose of its source, frozen at admission: `plan` of
/// the fleet's rows, as JSON. Agents may have other names for the same destinations.
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
    /// How many such plans the version has. After a loss the schema compares it with those that agents report.
    var deliveries: Int
    /// Of the source, as its admitting agent saw it: a file that replaced it is not disposed of.
    var inode: UInt64

    private enum CodingKeys: String, CodingKey {
        case route, category, fields, labels, policy, priority, steps, deliveries, inode
        case mediaType = "media_type"
    }

    /// One plan for each delivery that waits for no other, with those behind it; nil where a destination has no address.
    static func all(of file: FileAdmission, address: (String) -> String?) -> [PlacePlan]? {
        guard let plan = file.plan else { return nil }
        var plans: [PlacePlan] = []
        for leader in file.steps.steps where leader.after == nil {
            let names =
                [leader.destination] + file.steps.steps.filter { $0.after == leader.destination }.map(\.destination)
            let addresses = names.compactMap(address)
            guard addresses.count == names.count else { return nil }
            let key = plan.key(at: leader.destination)
            plans.append(PlacePlan(plan, file.arrival, addresses.map { Step(address: $0, key: key) }))
        }
        for place in plans.indices { plans[place].deliveries = plans.count }
        return plans
    }

    /// The key that the fleet decides about.
    var key: String { steps.first?.key ?? "" }

    /// Registrations follow the file to its name.
    mutating func rename(to key: String) { for place in steps.indices { steps[place].key = key } }

    /// The admission of this work here; nil where a destination is not configured here.
    ///
    /// - Parameters:
    ///   - arrival: with the identity that the file has here.
    ///   - name: the local name of the destination at an address.
    func admission(
        of arrival: FoundFile, terms: AdmissionTerms, name: (String) -> String?
    ) -> FileAdmission? {
        let names = steps.compactMap { name($0.address) }
        guard names.count == steps.count, Set(names).count == names.count else { return nil }
        var plan = Plan(
            route: route, category: category, key: key, mediaType: mediaType, with: fields, destinations: names,
            onSuccess: policy.onSuccess, onFailure: policy.onFailure, retry: policy.retry)
        plan.otherKeys = Dictionary(uniqueKeysWithValues: zip(names, steps.map(\.key))).filter { $0.value != key }
        (plan.priority, plan.labels, plan.ownLabels) = (Priority(rank: priority), labels, policy.ownLabels)
        (plan.receipts, plan.window) = (policy.receipts, policy.window)
        let size = arrival.identity.size
        let lanes = names.map { ($0, terms.lane(of: size, to: $0)) }
        var file = FileAdmission(
            arrival, plan: plan, lanes: Dictionary(uniqueKeysWithValues: lanes), uptimes: terms.uptimes)
        let followers = names.dropFirst().map { ($0, names[0]) }
        if !followers.isEmpty { file.storages = Dictionary(uniqueKeysWithValues: followers) }
        return file
    }
}

extension PlacePlan {
    private init(_ plan: Plan, _ arrival: FoundFile, _ steps: [Step]) {
        func texts(_ texts: [String: String]) -> [String: String] {
            Dictionary(texts.map { ($0.withoutNUL, $1.withoutNUL) }) { first, _ in first }
        }
        (route, category, mediaType) = (plan.route, plan.category, plan.mediaType)
        (fields, labels, priority) = (texts(plan.with), texts(plan.labels), plan.priority.rank)
        (self.steps, deliveries, inode) = (steps, 1, arrival.identity.inode)
        policy = FilePolicy(ofPlace: plan)
    }
}

/// The row that is kept for a report after a loss: one of `v1_again_admitted`, with the destination's address instead
/// of its number.
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
