internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines

extension DeliverOne {
    /// Opens the source, once, and has it delivered.
    func open(
        _ file: FileRow, _ pipeline: any Pipeline, _ order: DeliveryOrder, _ attempt: Attempt
    ) async -> Result<DeliveryOutcome, DeliveryError> {
        do throws(DeliveryError) {
            let source: SourceFile
            let left: DeliveryError?
            do {
                source = try SourceFile(opening: file.place)
                left = try leftAlone(source, file)
            } catch {
                // What has been sent whole needs no source, wherever that is.
                if error.isMissing, let ended = try await pipeline.conclude(file.fullPath, order, attempt) {
                    return .success(ended)
                }
                throw Self.unopened(error)
            }
            if let left { throw left }
            var order = order
            // From here on what it is now counts, of which pipelines notice every change.
            if try await hasItsContent(source, file) { order.source = source.opened }
            return .success(try await pipeline.deliver(source, order, attempt))
        } catch {
            return .failure(error)
        }
    }

    /// Why what was opened is not taken; nil for what is. Its folder's rule is asked of it.
    private func leftAlone(_ source: SourceFile, _ file: FileRow) throws(SystemError) -> DeliveryError? {
        if try source.look().refusal(by: orders.rule(of: file)) != nil {
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

    /// Whether the content is the one that was admitted, or proved elsewhere, although inode, device or ctime are others (a
    /// chmod, a remount, a server that numbers its files anew): size and time must be the same, and a checksum must be known.
    private func hasItsContent(_ source: SourceFile, _ file: FileRow) async throws(DeliveryError) -> Bool {
        guard
            case .unclear = SourceStanding(source.opened, since: file.identity, ignoringChangeTime: false),
            file.hasChecksum
        else { return false }
        return try await file.hasContent(source, Hashing(pool: hashing))
    }

    /// As the journal has it: another destination may have proved the content since this delivery was claimed.
    private func current(_ file: FileRow) async -> FileRow {
        // What it does not answer now is not known, as when the delivery began.
        (try? await journal.job(file.id))?.file ?? file
    }

    /// The same error, unless a fresh look says otherwise: that a file is gone, or another one, ends its delivery for good, and
    /// is not believed of one that is there as it was.
    func confirmed(_ found: DeliveryError, _ file: FileRow) async -> DeliveryError {
        guard found.verdict == .sourceGone || found.verdict == .sourceChanged else { return found }
        do throws(DeliveryError) {
            let source: SourceFile
            do {
                source = try SourceFile(opening: file.place)
                if let left = try leftAlone(source, file) { return left }
            } catch {
                return error.isMissing || error.isNotRegular ? found : DeliveryError(reading: error)
            }
            let isSame =
                switch SourceStanding(source.opened, since: file.identity, ignoringChangeTime: false) {
                case .same: true
                case .changed: false
                case .unclear:
                    if source.isRenumbered(source.opened, since: file.identity) {
                        true
                    } else {
                        try await hasItsContent(source, await current(file))
                    }
                }
            if isSame {
                return DeliveryError(
                    .outage(after: nil), .sourceUnreadable,
                    "\(source.path.display): it is there as it was admitted, and is tried again (\(found.reason))")
            }
            if found.verdict == .sourceChanged { return found }
            return DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(source.path.display): replaced before it was delivered; the new one is taken when it is quiet")
        } catch {
            return error
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
