internal import InletCore

extension RoboscopeAPI {
    /// Tries of one change, when others change the same object at the same time.
    private static let tries = 3

    /// Reads an object, lets `change` say what shall be different, and writes just that, with the version that was read.
    /// When someone else was faster (409), it is read again and `change` decides anew, at most three times.
    ///
    /// - Parameter change: nil when the object is as it shall be already; then nothing is sent.
    /// - Returns: the object as it was read last, after the change if there was one.
    func changing<Resource: RoboscopeResource>(
        _ type: Resource.Type, _ id: String, _ change: (Resource) throws(DeliveryError) -> JSONObject?
    ) async throws(DeliveryError) -> Resource {
        var tried = 0
        while true {
            let current = try await get(type, id)
            guard let fields = try change(current), !fields.isEmpty else { return current }
            do throws(DeliveryError) {
                try await update(type, id, Self.versioned(fields, current))
                return try await get(type, id)
            } catch {
                guard error.code == .conflict, Resource.isVersioned else { throw error }
                tried += 1
                guard tried < Self.tries else {
                    throw DeliveryError(
                        .retry(after: nil), .conflict, "\(error.reason); others changed it \(tried) times meanwhile")
                }
                try await pause(.milliseconds(100 << tried))
            }
        }
    }

    private static func versioned(_ fields: JSONObject, _ current: some RoboscopeResource) -> JSONObject {
        guard let version = current.version else { return fields }
        return fields.merging(["version": .number(String(version))]) { $1 }
    }

    private func pause(_ duration: Duration) async throws(DeliveryError) {
        do {
            try await Task.sleep(for: duration)
        } catch {
            throw DeliveryError(.cancelled, .cancelled, "cancelled while another writer was waited for")
        }
    }
}
