internal import InletCore
internal import InletLinux
internal import InletTransfer

/// A file in one streamed form. What is lost of it is sent again from the start; the server then knows the bytes.
struct FormUpload: Sendable {
    let job: GigHiveJob

    private typealias Ended = (response: HTTPResponse, digest: Result<RunningHash, DeliveryError>)

    /// nil when the form is too large for something on the way and tus is allowed.
    func deliver() async throws(DeliveryError) -> Proof? {
        let settings = job.api.settings
        let form = FormData(
            fields: job.fields.values, fileField: "file", fileName: job.name.bytes, mediaType: job.mediaType)
        let request = job.api.form(form, try job.source, size: job.size)
        // A send that fails ends the scope, and with it the hashing: the two readers share the page cache.
        async let hashed = job.hashed(RunningHash(), to: job.size)
        let response: HTTPResponse
        do throws(DeliveryError) {
            response = try await job.api.service.answer(to: request, meter: job.attempt.meter)
        } catch {
            // Its answer may be all that was lost.
            await noteMayBeVisible()
            if settings.transport == .auto, brokeInBody(error) { return nil }
            throw error
        }
        let verdict = GigHiveVerdict(response, at: .form)
        switch verdict {
        case .done, .duplicate:
            let reply = try await job.accept(response, request)
            return try await job.proof(reply, try await hashed.get().digest)
        case .useTus where settings.transport == .auto: return nil
        case .outage, .retry, .notYet:
            // What a proxy says of time-outs tells nothing about what the server does behind it.
            await noteMayBeVisible()
            fallthrough
        default:
            throw verdict.error(
                response, "sending \(job.name.display) to \(request.url.redacted)")
        }
    }

    private func noteMayBeVisible() async {
        guard job.attempt.meter.hasStarted else { return }
        await job.attempt.checkpoint.putPersistently([CheckpointNote.mayBeVisible: []])
    }

    /// Servers that refuse a body in its middle may hang up before their answer can be read. What is larger than a chunk
    /// goes by tus from then on, which also resumes where the line is just bad.
    private func brokeInBody(_ error: DeliveryError) -> Bool {
        error.code == .connectionLost && job.size > job.api.settings.chunkSize && !Task.isCancelled
    }
}
