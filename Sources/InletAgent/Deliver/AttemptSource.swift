internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

extension Shared {
    /// What a pipeline is told of a delivery to `destination`; only registrations are told of what came before them.
    ///
    /// The time to live of a delivery that waited for others begins here: how long they took is not its fault.
    func order(
        _ file: FileRow, _ delivery: DeliveryRow, to destination: Destination
    ) async throws(DeliveryError) -> DeliveryOrder {
        let place = SourcePlace(file, roots: settings.sendRoots.compactMap { $0.root(of: file.fullPath) })
        var order = DeliveryOrder(
            id: delivery.id, destination: delivery.destination, key: delivery.key ?? "", mediaType: file.mediaType,
            fields: delivery.fields, source: file.identity, path: place.path, root: place.root)
        do {
            let begins = delivery.state == .claimed && (delivery.afterID != nil || delivery.closes != nil)
            if begins, delivery.expiresAt == nil, let life = file.policy.retry.expire {
                let uptime = destinations.uptimes()[delivery.destination] ?? 0
                try await journal.startExpiry(of: delivery.id, at: uptime + life.milliseconds)
            }
            guard destination.storage != nil || destination.closesBatches else { return order }
            let context = try await journal.context(of: delivery, in: file)
            order.upstream = context.upstream
            if !order.upstream.isEmpty { order.upstream[0].path = place.path }
            order.batch = context.batch
            return order
        } catch {
            throw DeliveryError(.outage(after: nil), .internalFault, "\(error)")
        }
    }
}

/// The source of an attempt: opened once, and looked at again before anybody believes that it is gone.
extension DeliveryAttempt {
    /// - Returns: the open file, and why it is not taken; nil for what is.
    func openSource() throws(SystemError) -> (file: SourceFile, objection: DeliveryError?) {
        let source = try SourceFile(opening: file.place)
        return (source, try objection(to: source))
    }

    private func objection(to source: SourceFile) throws(SystemError) -> DeliveryError? {
        if try source.look().refusal(by: rule) != nil {
            return DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(source.path.display): got another owner, or another name, since it was admitted, and is left alone")
        }
        if try source.exceedsItsSize() {
            return DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(source.path.display): reading it gives more than its size says, and it is left alone")
        }
        return nil
    }

    /// Which files are taken from the folder that the file was found in; any of those that a person named.
    private var rule: SourceRule { shared.settings.sendRoots.first { $0.covers(file.root) }?.sources ?? SourceRule() }

    /// Whether the content is the one that was admitted, or proved elsewhere, although inode, device or ctime are others (a
    /// chmod, a remount, a server that numbers its files anew): size and time must be the same, and a checksum must be known.
    func hasContent(of file: FileRow, _ source: SourceFile) async throws(DeliveryError) -> Bool {
        guard
            case .unclear = SourceStanding(source.opened, since: file.identity, ignoringChangeTime: false),
            file.hasChecksum
        else { return false }
        return try await file.hasContent(source, Hashing(pool: stage.pool))
    }

    // MARK: - A second look

    /// What a fresh look finds, where an attempt missed the source or found another one.
    func presence(after error: DeliveryError) async -> SourcePresence {
        guard error.verdict == .sourceGone || error.verdict == .sourceChanged else { return .asSaid }
        let found = await look()
        switch found {
        case .untouched: return found
        case .refused(let error) where error.verdict != .sourceChanged && error.verdict != .sourceGone: return found
        default: break
        }
        guard shared.roots.isAway(file) else { return found }
        return .away(
            root: file.root.display, isVolume: file.volume != nil,
            isSoon: shared.roots.isUnknown(file.root) || shared.roots.hasMoved(file))
    }

    private func look() async -> SourcePresence {
        do throws(DeliveryError) {
            let opened: (file: SourceFile, objection: DeliveryError?)
            do throws(SystemError) {
                opened = try openSource()
            } catch {
                return error.isMissing || error.isNotRegular ? .asSaid : .refused(DeliveryError(reading: error))
            }
            if let objection = opened.objection { return .refused(objection) }
            let name = opened.file.path.display
            return try await isAsAdmitted(opened.file) ? .untouched(name: name) : .replaced(name: name)
        } catch {
            return .refused(error)
        }
    }

    private func isAsAdmitted(_ source: SourceFile) async throws(DeliveryError) -> Bool {
        switch SourceStanding(source.opened, since: file.identity, ignoringChangeTime: false) {
        case .same: return true
        case .changed: return false
        case .unclear:
            if source.isRenumbered(source.opened, since: file.identity) { return true }
            // As the journal has it now: another destination may have proved the content since this delivery was claimed. What
            // it does not answer is not known, as when the delivery began.
            let current = (try? await shared.journal.job(file.id))?.file ?? file
            return try await hasContent(of: current, source)
        }
    }
}

extension FileRow {
    /// Whether a checksum is known of what was admitted.
    var hasChecksum: Bool { content != nil || !digests.isEmpty }

    /// Whether `source` has the content that was admitted, or proved, by the checksum that is known of that.
    func hasContent(_ source: SourceFile, _ hashing: Hashing) async throws(DeliveryError) -> Bool {
        if let content {
            return try await Fingerprint.matches(content, source, on: hashing.pool, progress: hashing.progress)
        }
        let known = Set(digests)
        let found = try await Fingerprint.digests(
            Set(known.map(\.algorithm)), of: source, on: hashing.pool, progress: hashing.progress)
        return !known.isEmpty && Set(found) == known
    }
}
