package import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

extension FolderPipeline: DeliveryVerifying {
    /// Looks at the file; reads it past the page cache.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        try await withTaskExecutorPreference(pool) { () async throws(DeliveryError) in
            _ = try requireFolder()
            let key = FilePath(order.proof.key)
            guard key.isRelative, key.components.allSatisfy({ $0.kind == .regular }) else {
                return .cannotTell("the key '\(DisplayText.escape(order.proof.key))' is not a path below a folder")
            }
            do throws(SystemError) {
                return try Self.look(settings.path.pushing(key), order)
            } catch {
                return try Self.verdict(on: error)
            }
        }
    }

    /// What an error says that came with one file, while the folder itself is there: nothing about the other files.
    static func verdict(on error: SystemError) throws(DeliveryError) -> Verification {
        // A bad sector loses what is on it, and no more.
        if error.isDeviceFault { return .differs("cannot be read: \(error)") }
        // What a symlink leads to is not what was delivered, nor does it say that this is gone.
        if error.isPermission || error.isLinked { return .cannotTell("\(error)") }
        // It went between the look and the read.
        if error.isMissing { return .missing("\(error)") }
        if error.isNotRegular { return .differs("\(error)") }
        if error.code == .canceled { throw DeliveryError(.cancelled, .cancelled, "\(error)") }
        throw DeliveryError(
            .retry(after: nil), error.isShortage ? .outOfResources : .destinationUnwritable, "\(error)")
    }

    private static func look(_ path: FilePath, _ order: VerifyOrder) throws(SystemError) -> Verification {
        guard let name = path.lastComponent else { return .cannotTell("the key is empty") }
        let folder = try Folder(path.removingLastComponent())
        let look = try folder.look(name)
        if look == .missing { return .missing("\(path.display) is not there") }
        guard let size = look.identity?.size else { return .differs("\(path.display) is no regular file") }
        guard order.comparesBytes, size == order.proof.size else { return order.compare(size: size, etag: nil) }
        var check = ContentCheck(order)
        var reader = try UncachedReader.open(name, in: folder)
        while try reader.next({ check.update($0) }) {
            if Task.isCancelled { throw SystemError(call: "read", path: path, code: .canceled) }
        }
        return check.finish()
    }
}

extension S3Pipeline: DeliveryVerifying {
    /// HeadObject; GetObject where bytes are to be read.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        let key = order.proof.key
        do throws(DeliveryError) {
            guard let found = try await api.head(key) else { return .missing("there is no such object") }
            guard order.comparesBytes, found.size == order.proof.size else {
                return order.compare(size: found.size, etag: found.etag)
            }
        } catch {
            guard error.code == .unauthorized, error.reason.contains(S3API.denied) else { throw error }
            return .cannotTell("these keys may not read the bucket")
        }
        let request = try api.signed(S3API.Call(method: "GET", key: key))
        let (verification, answer) = try await api.client.check(request, order)
        if let verification { return verification }
        if answer.status == 404 { return .missing("there is no such object") }
        throw api.refusal(answer, "reading \(api.url(key).redacted)")
    }
}

extension R2Pipeline: DeliveryVerifying {
    /// One byte through a presigned URL (dialect v1), or a HEAD below `public_url`; a GET of either for all bytes.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        let url: HTTPURL
        do throws(DeliveryError) {
            url = try await location(of: order.proof.key)
        } catch {
            switch error.code {
            case .notFound: return .missing("there is no such object")
            case .badRequest where error.verdict == .giveUp: return .cannotTell(error.reason)
            default: throw error
            }
        }
        let what = "looking up \(url.redacted)"
        if order.comparesBytes {
            let (verification, answer) = try await api.client.check(HTTPRequest("GET", url), order)
            if let verification { return verification }
            return try Self.missing(answer, what)
        }
        // What was presigned for GET cannot be sent as HEAD.
        let isPresigned = settings.dialect == .v1
        let request =
            isPresigned
            ? HTTPRequest("GET", url, headers: [("Range", "bytes=0-0")], answerLimit: 64 << 10)
            : HTTPRequest("HEAD", url)
        let answer = try await api.client.exchange(request)
        let size: Int64?
        switch answer.status {
        case 416: size = 0
        case 200..<300: size = Self.length(answer)
        default: return try Self.missing(answer, what)
        }
        guard let size else { return .cannotTell("\(url.redacted) does not say how long it is") }
        return order.compare(size: size, etag: answer.header("ETag"))
    }

    private static func length(_ answer: HTTPResponse) -> Int64? {
        let total = answer.header("Content-Range")?.split(separator: "/").last.map(String.init)
        return (total ?? answer.header("Content-Length")).flatMap { Int64($0) }
    }

    private static func missing(_ answer: HTTPResponse, _ what: String) throws(DeliveryError) -> Verification {
        if answer.status == 404 || answer.status == 410 { return .missing("there is no such object") }
        throw DeliveryError.ofStore(answer, what)
    }
}
