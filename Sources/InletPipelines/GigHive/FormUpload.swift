internal import InletCore
internal import InletLinux
internal import InletTransfer

/// A file in one streamed form. What is lost of it is sent again from the start; the server then knows the bytes.
extension GigHiveJob {
    /// nil when the form is too large for something on the way and tus is allowed.
    func deliverForm() async throws(DeliveryError) -> Proof? {
        let settings = api.settings
        let form = FormData(
            fields: fields.values, fileField: "file", fileName: name.bytes, mediaType: mediaType)
        let request = api.form(form, try source, size: size)
        // A send that fails ends the scope, and with it the hashing: the two readers share the page cache.
        async let hashed = self.hashed(RunningHash(), to: size)
        let response: HTTPResponse
        do throws(DeliveryError) {
            response = try await api.service.answer(to: request, meter: attempt.meter)
        } catch {
            // Its answer may be all that was lost.
            await noteMayBeVisible()
            if settings.transport == .auto, brokeInBody(error) { return nil }
            throw error
        }
        let verdict = GigHiveVerdict(response, at: .form)
        switch verdict {
        case .done, .duplicate:
            let reply = try await accept(response, request)
            return try await proof(reply, try await hashed.get().digest)
        case .useTus where settings.transport == .auto: return nil
        case .outage, .retry, .notYet:
            // What a proxy says of time-outs tells nothing about what the server does behind it.
            await noteMayBeVisible()
            fallthrough
        default:
            throw verdict.error(
                response, "sending \(name.display) to \(request.url.redacted)")
        }
    }

    private func noteMayBeVisible() async {
        guard attempt.meter.hasStarted else { return }
        await attempt.checkpoint.putPersistently([CheckpointName.mayBeVisible: []])
    }

    /// Servers that refuse a body in its middle may hang up before their answer can be read. What is larger than a chunk
    /// goes by tus from then on, which also resumes where the line is just bad.
    private func brokeInBody(_ error: DeliveryError) -> Bool {
        error.code == .connectionLost && size > api.settings.chunkSize && !Task.isCancelled
    }
}

/// A `multipart/form-data` body (RFC 7578) around one file: what goes before the file's bytes, and what goes after.
struct FormData: Sendable, Equatable {
    let boundary: String
    let header: [UInt8]
    let footer: [UInt8]

    var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// - Parameters:
    ///   - fields: names are our own; values may hold anything but the boundary.
    ///   - fileName: bytes as the file system has them.
    ///   - boundary: a fresh random one. The file's bytes are not looked at: 128 random bits do not occur in them.
    init(
        fields: [(name: String, value: String)], fileField: String, fileName: [UInt8], mediaType: String,
        boundary: String = FormData.randomBoundary()
    ) {
        var boundary = boundary
        while fields.contains(where: { $0.value.contains(boundary) }) { boundary = Self.randomBoundary() }
        var header: [UInt8] = []
        for (name, value) in fields {
            header += "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n".utf8
            header += value.utf8
            header += "\r\n".utf8
        }
        header += "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(fileField)\"; filename=\"".utf8
        header += Self.escaped(fileName)
        header += "\"\r\nContent-Type: \(mediaType)\r\n\r\n".utf8
        self.boundary = boundary
        self.header = header
        footer = Array("\r\n--\(boundary)--\r\n".utf8)
    }

    /// The name as browsers write it (HTML, "multipart/form-data encoding algorithm"): quotes, CR and LF as `%HH`. What
    /// could end the line or is not UTF-8 goes the same way; nothing else changes.
    static func escaped(_ name: [UInt8]) -> [UInt8] {
        let isText = String(validating: name, as: UTF8.self) != nil
        return name.flatMap { byte -> [UInt8] in
            let isPlain = byte != UInt8(ascii: "\"") && byte >= 0x20 && byte != 0x7F && (isText || byte < 0x80)
            guard !isPlain else { return [byte] }
            let digits = String(byte, radix: 16, uppercase: true)
            return Array(((byte < 16 ? "%0" : "%") + digits).utf8)
        }
    }

    static func randomBoundary() -> String {
        let words = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }
        return "inlet-form-" + words.joined()
    }
}
