package import InletCore
internal import InletTransfer

extension PipelineFactory {
    /// Nothing of size goes there but markers, which share the connections.
    func roboscope(_ destination: DestinationSettings) throws(SettingFault) -> Destination {
        let settings = try RoboscopeSettings(destination.values)
        let pipeline = RoboscopePipeline(
            settings: settings,
            client: try client(
                for: destination, Trust(caFile: settings.caFile), connections: settings.connections),
            pool: pool, readYAML: readYAML)
        var made = Destination(
            name: destination.name, type: destination.type, pipeline: pipeline, smallLimit: .max,
            connections: settings.connections, maxInFlight: nil)
        made.setAddress(settings.url)
        made.takesSidecars = RoboscopeSettings.type.takesSidecars
        made.fields = FieldSpec.filled([:], RoboscopeSettings.type.fields)
        made.testExtension = "glb"
        made.storage = StorageNeed(
            destination: settings.storage,
            isNeededWith: { path, fields in
                // With fields that cannot be used nothing is registered; what the file is by its name is stored all the same.
                let role = (try? RoboscopeFields(fields, path: path))?.role ?? RoboscopeRole(path)
                return role.needsStorage
            })
        made.reading = { path, fields in RoboscopeFields.reading(fields, path: path) }
        made.closesBatches = true
        return made
    }

    /// What people ask of a Roboscope server. - Throws: `SettingFault` as `make` does.
    package func roboscopeDesk(_ destination: DestinationSettings) throws(SettingFault) -> RoboscopeDesk {
        let settings = try RoboscopeSettings(destination.values)
        return RoboscopeDesk(
            settings: settings,
            client: try client(Trust(caFile: settings.caFile), connections: settings.connections, of: destination))
    }
}
