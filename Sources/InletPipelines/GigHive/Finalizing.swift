internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Has an upload that was sent whole filed by the server. The bytes are never sent again because the server is slow: while
/// it says that it is not ready, the delivery waits without a worker, up to `finalize_for`.
struct Finalizing: Sendable {
    let job: GigHiveJob

    /// Waits after the first, second… try; the last one stays.
    private static let waits: [Duration] = [
        .milliseconds(400), .seconds(1), .seconds(2), .seconds(5), .seconds(10), .seconds(20), .seconds(30),
    ]

    /// nil when the bytes are not there and have to be sent again.
    func finish(_ notes: inout GigHiveNotes) async throws(DeliveryError) -> DeliveryOutcome? {
        guard let upload = notes.upload, let digest = notes.sent else {
            throw DeliveryError(.giveUp, .internalFault, "\(job.name.display): there is no upload to finalize")
        }
        let request = job.api.finalize(upload, job.fields)
        let response = try await job.api.service.answer(to: request)
        let verdict = GigHiveVerdict(response, at: .finalize)
        switch verdict {
        case .done, .duplicate:
            let reply = try await job.accept(response, request)
            // Bytes that another event had already stay in the upload; what was filed is gone from it.
            if reply.deleteToken == nil { try? await Tus(api: job.api).delete(upload) }
            do throws(DeliveryError) {
                return .delivered(try await job.proof(reply, digest))
            } catch {
                switch error.verdict {
                // What cannot be dropped now ends by itself at the server; the error at hand is the one that is told.
                case .sourceChanged, .sourceGone: try? await Tus(api: job.api).delete(upload)
                // As above.
                default: if error.code == .corrupted { try? await Tus(api: job.api).delete(upload) }
                }
                throw error
            }
        // The bytes are safe where they are, so whatever passes is waited out here.
        case .notYet, .retry(.serverError), .retry(.timedOut), .retry(.throttled), .retry(.conflict):
            return .waiting(until: try await putOff(&notes, upload, response))
        // Concurrent calls can say so too, and settle on the next one.
        case .sendAgain where notes.missing == 0:
            notes.missing += 1
            return .waiting(until: try await putOff(&notes, upload, response))
        case .sendAgain: return nil
        default:
            throw verdict.error(
                response, "finalizing \(job.name.display) at \(request.url.redacted)")
        }
    }

    /// Notes one more try in vain. - Returns: when the next is due.
    private func putOff(
        _ notes: inout GigHiveNotes, _ upload: String, _ response: HTTPResponse
    ) async throws(DeliveryError) -> WallTime {
        let bound = job.api.settings.finalizeFor
        let isOver = notes.waited >= bound.milliseconds
        let asked = min(response.retryAfter(now: .now) ?? .zero, .seconds(60))
        let wait = max(Self.wait(after: notes.tries), asked)
        notes.tries += 1
        notes.waited += wait.milliseconds
        notes.stuckSince = isOver ? .now : nil
        // A person's retry has the whole time again.
        if isOver { (notes.waited, notes.tries, notes.missing) = (0, 0, 0) }
        try await job.attempt.checkpoint.put(notes.finalizeNote)
        guard isOver else { return .now + wait }
        let said = GigHiveSaid(response).text
        let cause =
            said.contains("hook output has not been written")
            ? "server hook not running: tusd's post-finish hook is missing or not executable there" : said
        throw DeliveryError(
            .giveUp, .conflict,
            "\(job.name.display): all bytes are at \(job.api.settings.url.redacted) as upload \(upload), but it did not "
                + "file them in \(DurationText.format(bound)) (\(cause)); put it right, then 'inlet queue retry', which "
                + "within \(DurationText.format(GigHiveNotes.keptWhenStuck)) sends nothing again; then the upload is "
                + "dropped")
    }

    /// Between half of the step and all of it.
    private static func wait(after tries: Int) -> Duration {
        let longest = waits[min(tries, waits.count - 1)].milliseconds
        return .milliseconds(Int64.random(in: longest / 2...longest))
    }
}
