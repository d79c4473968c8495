package import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

extension GigHivePipeline: DeliveryVerifying {
    package var findsByKey: Bool { false }

    /// The server's record of the asset. Its bytes cannot be fetched with an uploader's login: the checksum in the record is
    /// the one that the server computed when it took the file.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        guard let id = order.proof.details?["asset_id"].flatMap({ Int64($0) }) else {
            return .cannotTell("the server did not say which asset it is")
        }
        if api.isGuest { return .cannotTell("guests may not look at assets") }
        guard let asset = try await api.asset(id) else { return .missing("asset \(id) is not there") }
        if let size = asset.size, size != order.proof.size {
            return .differs("asset \(id) has \(size) bytes, not \(order.proof.size)")
        }
        let wanted =
            ([order.proof.content].compactMap(\.self).filter { $0.partSize == nil }.map(\.digest) + order.digests)
            .first { $0.algorithm == .sha256 }
        guard let wanted, let said = asset.checksum?.lowercased() else {
            return .same("the server's record of asset \(id)")
        }
        return said == wanted.hex
            ? .same("the server's record of asset \(id): length, sha256")
            : .differs("asset \(id) has the sha256 \(DisplayText.escape(said)), not \(wanted.hex)")
    }
}

extension RoboscopePipeline: DeliveryVerifying {
    package var findsByKey: Bool { false }

    /// Whether the space still has the URLs that were registered, and the session is there.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        let details = order.proof.details ?? [:]
        var compared: [String] = []
        if let id = details["space_id"] {
            guard let space = try await there(RoboscopeSpace.self, id) else {
                return .missing("space \(id) is not there")
            }
            for (field, url) in details.sorted(by: { $0.key < $1.key })
            where field.hasSuffix("_url") && !field.hasPrefix("previous_") {
                let now = space.text(field) ?? ""
                if now != url {
                    return .differs(
                        "'\(field)' of space \(id) is "
                            + (now.isEmpty ? "empty" : "'\(DisplayText.escape(now))'") + ", not '\(url)'")
                }
                compared.append(field)
            }
            compared.append("space \(id)")
        }
        if let id = details["session_id"] {
            guard try await there(RoboscopeSession.self, id) != nil else {
                return .missing("session \(id) is not there")
            }
            compared.append("session \(id)")
        }
        return compared.isEmpty
            ? .cannotTell("nothing of its own was registered") : .same(compared.joined(separator: ", "))
    }

    private func there<Resource: RoboscopeResource>(
        _ type: Resource.Type, _ id: String
    ) async throws(DeliveryError) -> Resource? {
        do throws(DeliveryError) {
            return try await api.get(type, id)
        } catch {
            guard error.code == .notFound else { throw error }
            return nil
        }
    }
}

extension VOPIPipeline: DeliveryVerifying {
    package var findsByKey: Bool { false }

    /// The files of the results, as `product.json` lists them. The video itself is not kept by the server, and it may forget
    /// a job whose results are here.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        guard let id = order.proof.details?["job_id"] else { return .cannotTell("there is no job of it") }
        let folder = VOPIResults.folder(of: id, in: api.settings)
        let readsBytes = order.readsBytes
        let found = try await pool.run { () throws(DeliveryError) -> Verification in
            do throws(SystemError) { return try Self.look(folder, readsBytes: readsBytes) } catch {
                return try FolderPipeline.verdict(on: error)
            }
        }
        guard case .same(let files) = found else { return found }
        do throws(DeliveryError) {
            _ = try await api.status(id)
            return .same("\(files), job \(id)")
        } catch {
            guard error.code == .notFound else { throw error }
            return .same("\(files); the server no longer knows job \(id)")
        }
    }

    private static func look(_ folder: FilePath, readsBytes: Bool) throws(SystemError) -> Verification {
        let list = folder.appending(VOPIProduct.name)
        let place = try VOPIResults.open("", in: folder)
        guard let product = VOPIValue(try place.read(VOPIProduct.fileName, limit: 64 << 20)), product.isObject else {
            return .differs("\(list.display) is not the JSON that it was")
        }
        for file in product["files"].list {
            guard let name = file["path"].text else { continue }
            let path = folder.pushing(FilePath(name))
            guard let last = path.lastComponent else { continue }
            let above = try place.folder(FilePath(name).removingLastComponent())
            guard let size = try above.look(last).identity?.size else {
                return .missing("\(path.display) is not there")
            }
            if let wanted = file["size"].integer, size != wanted {
                return .differs("\(path.display) has \(size) bytes, not \(wanted)")
            }
            if readsBytes, let wanted = file["sha256"].text {
                let found = try VOPIProduct.sha256(SourceFile(opening: last, in: above))
                if found != wanted { return .differs("\(path.display) has the sha256 \(found), not \(wanted)") }
            }
        }
        if let missing = missing(product) { return .missing(missing) }
        return .same("\(product["files"].list.count) files of results" + (readsBytes ? ", all bytes read" : ""))
    }

    /// What the job spoke of and never gave; nil where nothing is missing.
    private static func missing(_ product: VOPIValue) -> String? {
        let names = product["missing"].list.compactMap(\.text)
        guard !names.isEmpty || product["complete"].boolean == false else { return nil }
        let there = product["files"].list.count
        let all = max(product["expected"].integer ?? 0, there + names.count)
        let shown = names.prefix(5).map { DisplayText.escape($0) } + (names.count > 5 ? ["…"] : [])
        return "\(all - there) of \(all) results never came"
            + (shown.isEmpty ? "" : ": " + shown.joined(separator: ", "))
            + "; 'inlet vopi download \(product["job"].text ?? "JOB")' fetches them"
    }
}
