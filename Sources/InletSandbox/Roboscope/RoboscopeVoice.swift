import InletCore

/// How objects are told; what is unset reads null.
struct RoboscopeVoice: Sendable {
    let tellsFractions: Bool

    func time(_ time: WallTime) -> String {
        let text = time.rfc3339
        return tellsFractions ? text : String(text.prefix(19)) + "Z"
    }

    func space(_ space: RoboscopeSandbox.Space) -> SandboxJSON {
        [
            "id": .string(space.id), "key": .string(space.key), "name": .string(space.name),
            "description": text(space.description), "model_glb_url": text(space.modelGLBURL),
            "model_usdc_url": text(space.modelUSDCURL), "preview_url": text(space.previewURL),
            "scan_url": text(space.scanURL), "ml_model_url": .null, "is_active": true, "meta": space.meta ?? .null,
            "created_at": .string(time(space.created)), "updated_at": .string(time(space.updated)),
        ]
    }

    func session(_ session: RoboscopeSandbox.WorkSession) -> SandboxJSON {
        [
            "id": .string(session.id), "space_id": .string(session.spaceID), "session_type": .string(session.type),
            "status": .string(session.status), "started_at": text(session.startedAt),
            "completed_at": text(session.completedAt), "meta": session.meta ?? .null,
            "version": .number(Double(session.version)), "created_at": .string(time(session.created)),
            "updated_at": .string(time(session.updated)),
        ]
    }

    func marker(_ marker: RoboscopeSandbox.Marker) -> RoboscopeAnswers.Marker {
        let corners = marker.corners
        return RoboscopeAnswers.Marker(
            id: marker.id, work_session_id: marker.sessionID, label: marker.label, p1: corners[0], p2: corners[1],
            p3: corners[2], p4: corners[3], color: marker.color, meta: marker.meta, custom_props: marker.customProps,
            version: marker.version, created_at: time(marker.created), updated_at: time(marker.updated))
    }

    func event(_ event: RoboscopeSandbox.Event) -> SandboxJSON {
        [
            "id": .number(Double(event.id)), "action": .string(event.action), "object_id": .string(event.object),
            "created_at": .string(time(event.time)),
        ]
    }

    /// Where a marker is and how large, along x and z.
    func details(_ marker: RoboscopeSandbox.Marker) -> SandboxJSON {
        let (x, z) = (marker.corners.map { $0[0] }, marker.corners.map { $0[2] })
        let (left, right, near, far) = (x.min() ?? 0, x.max() ?? 0, z.min() ?? 0, z.max() ?? 0)
        return [
            "marker_id": .string(marker.id), "center_location_long": .number((near + far) / 2),
            "center_location_cross": .number((left + right) / 2), "x_negative": .number(left),
            "x_positive": .number(right), "z_negative": .number(near), "z_positive": .number(far),
            "long_size": .number(far - near), "cross_size": .number(right - left), "custom_props": [:],
            "created_at": .string(time(marker.updated)), "updated_at": .string(time(marker.updated)),
        ]
    }

    private func text(_ text: String?) -> SandboxJSON { text.map(SandboxJSON.string) ?? .null }
}
