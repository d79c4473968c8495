internal import InletCore
internal import InletLinux
internal import InletTransfer

/// A file in one streamed form. A failed one is sent again from the start; the server may know the bytes by then.
extension GigHiveJob {
    /// nil when the form is too large for something on the way and tus is allowed.
    func deliverForm() async throws(DeliveryError) -> Proof? {
        let settings = api.settings
        let form = FormData(
            fields: fields.values, fileField: "file", fileName: name.bytes, mediaType: mediaType)
        let request = api.form(form, try source, size: size)
        // A failed send ends the scope, and with it the hashing: the two readers share the page cache.
        async let hashed = self.hashed(RunningHash(), to: size)
        let response: HTTPResponse
        do throws(DeliveryError) {
            response = try await api.service.answer(to: request, meter: attempt.meter)
        } catch {
            // Only its answer may be lost.
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
            // A proxy's time-out says nothing about the server behind it.
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

    /// Servers that refuse a body in the middle may hang up before their answer can be read. From then on larger files
    /// use tus, which also resumes on a bad line.
    private func brokeInBody(_ error: DeliveryError) -> Bool {
        error.code == .connectionLost && size > api.settings.chunkSize && !Task.isCancelled
    }
}

/// A `multipart/form-data` body (RFC 7578) around one file: the parts before and after the file's bytes.
struct FormData: Sendable, Equatable {
    let boundary: String
    let header: [UInt8]
    let footer: [UInt8]

    var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// - Parameters:
    ///   - fields: names are ours; values may hold anything but the boundary.
    ///   - fileName: its bytes in the file system.
    ///   - boundary: fresh and random. The file's bytes are not searched: 128 random bits do not occur in them.
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

    /// The name as browsers write it (HTML, "multipart/form-data encoding algorithm"): quotes, CR and LF as `%HH`.
    /// Other bytes that could end the line, or are not UTF-8, are encoded too; nothing else changes.
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
