internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization

/// Contents that several agents may have: before a file is sent, its route's `dedupe` holds for all of them. While
/// PostgreSQL is away the journal alone decides; that may send twice what another agent has, and never loses a file.
final class FleetContents: ContentIndex {
    /// The end of a content that this agent brought, or could not bring.
    private struct End: Sendable {
        var destination: String
        var content: FleetContent
        /// nil: the next agent may bring it.
        var place: (key: String, url: String?)?
    }

    private let member: FleetMember
    /// Not said yet. Beyond `most` the oldest are dropped: arrived ones are said again with their receipts.
    private let ends = Mutex<[End]>([])
    /// Deliveries that the fleet lets bring their content, and which others wait for.
    private let owned = Mutex<Set<Int64>>([])
    /// Deliveries whose content was said to be there, and whose receipt has not been published.
    private let said = Mutex<Set<Int64>>([])

    private static let most = 10_000

    init(_ member: FleetMember) { self.member = member }

    /// Versions of shares are admitted once by themselves.
    func isAsked(about file: FileRow) -> Bool {
        file.policy.dedupe != .off && !file.policy.isOfPlace && file.digests.sha256 != nil
    }

    /// An attempt that left something at the destination continues with that, whatever the answer.
    func turn(of claim: Claim, at destination: Destination) async -> ContentTurn {
        guard let content = FleetContent(claim.file, claim.delivery), claim.delivery.waits == 0, member.grants,
            member.places[destination.name] != nil
        else { return .send }
        do throws(FleetError) {
            let standing = try await member.link.content(try await member.number(of: destination.name), content)
            if case .own = standing { owned.withLock { _ = $0.insert(content.ref) } }
            guard claim.checkpoint.isEmpty else { return .send }
            switch standing {
            case .own: return .send
            case .there(let key, let url, let agent): return .link(Self.link(claim.file, key, url, agent))
            case .wait(let agent): return .wait(by: Self.shown(agent))
            }
        } catch {
            // Sent twice at worst: the standing says why nobody could be asked.
            return .send
        }
    }

    private static func link(_ file: FileRow, _ key: String, _ url: String?, _ agent: String) -> Proof {
        let content = file.digests.sha256.map { ContentHash(digest: $0, partSize: nil) }
        return Proof(
            key: key, size: file.identity.size, method: .link, content: content, url: url,
            details: [Proof.sameAsAgentName: shown(agent)])
    }

    private static func shown(_ agent: String) -> String { String(DisplayText.escape(agent.utf8).prefix(128)) }

    // MARK: - Ends

    /// One that was not brought is free at once: before its next try a person may pause or cancel it, and others would
    /// wait for ever.
    func ended(_ claim: Claim, _ outcome: ClaimOutcome) {
        guard let content = FleetContent(claim.file, claim.delivery) else { return }
        if case .waiting = outcome { return }
        let wasOwned = owned.withLock { $0.remove(content.ref) != nil }
        if case .delivered(let proof) = outcome {
            if proof.isLink || proof.isDeleted { return }
            add(End(destination: claim.delivery.destination, content: content, place: (proof.key, proof.url)))
        } else if wasOwned {
            add(End(destination: claim.delivery.destination, content: content, place: nil))
        }
    }

    func deleted(_ delivery: DeliveryRow, of file: FileRow) {
        guard let content = FleetContent(file, delivery) else { return }
        add(End(destination: delivery.destination, content: content, place: nil))
    }

    private func add(_ end: End) {
        guard member.places[end.destination] != nil else { return }
        ends.withLock { ends in
            if ends.count >= Self.most { ends.removeFirst() }
            ends.append(end)
        }
        member.signals.raise(.fleet(.contents))
    }

    /// Says what has ended, in order, as soon as PostgreSQL is there.
    func run() async {
        await member.signals[.fleet(.contents)].loop {
            while let end = ends.withLock(\.first) {
                do throws(FleetError) {
                    try await say(end)
                } catch {
                    // A refusal of one content must not hold up the others; after an outage all are said.
                    if error.code != .argument, error.code != .fault {
                        return .now.advanced(by: FleetMember.pause)
                    }
                }
                ends.withLock { ends in
                    if ends.first?.content == end.content { ends.removeFirst() }
                }
            }
            return nil
        }
    }

    private func say(_ end: End) async throws(FleetError) {
        try await member.link.contentThere(
            try await member.number(of: end.destination), end.content, key: end.place?.key.withoutNUL,
            url: end.place?.url?.withoutNUL)
        if end.place != nil { said.withLock { if $0.count < Self.most { $0.insert(end.content.ref) } } }
    }

    /// Says what a file's deliveries brought, unless that was said: after an outage, a start, and a loss of commits.
    ///
    /// - Parameter isAgain: says all, because the database may have forgotten.
    func publish(_ job: Job, isAgain: Bool = false) async throws(FleetError) {
        for delivery in job.deliveries where member.places[delivery.destination] != nil {
            guard let proof = delivery.proof, delivery.state == .delivered, !proof.isLink, !proof.isDeleted,
                proof.method != .carried, proof.method != .adopted, isAsked(about: job.file),
                let content = FleetContent(job.file, delivery)
            else { continue }
            let wasSaid = said.withLock { $0.remove(delivery.id) != nil }
            if wasSaid, !isAgain { continue }
            try await member.link.contentThere(
                try await member.number(of: delivery.destination), content, key: proof.key.withoutNUL,
                url: proof.url?.withoutNUL)
        }
    }
}

extension FleetContent {
    /// nil where the content is unknown, where the route does not ask whether it is there, and for registrations: they
    /// are made again.
    init?(_ file: FileRow, _ delivery: DeliveryRow) {
        guard file.policy.dedupe != .off, !file.policy.isOfPlace, delivery.afterID == nil, delivery.closes == nil,
            let digest = file.digests.sha256
        else { return nil }
        // Members in the order of their names, so that equal fields are equal text.
        let fields = JSONValue.object(delivery.fields.mapValues { .string($0) }).bytes
        let hash = SHA256.bytes(of: fields).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        self.init(
            digest: digest.bytes, size: file.identity.size, purpose: Int64(bitPattern: hash), ref: delivery.id)
    }
}
