import InletConfig
import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// Destination types as the pipelines define them, so that these tests need no pipeline.
let standInTypes = [
    DestinationType(
        name: "r2", summary: "An R2 bucket.",
        keys: [
            KeySpec("api", .string, required: true, "Address of the API."),
            KeySpec("dialect", .choice(["seed", "r2", "v1"]), default: "v1", "Generation of the API."),
            KeySpec("api_key", .secret, "The credential."),
            KeySpec("part_size", .bytesOrAuto, default: "auto", "Size of a part."),
            KeySpec("parallel_parts", .integer(1...64), default: "4", "Parts at once."),
            KeySpec("public_url", .string, "Where objects can be read."),
            KeySpec("verify", .choice(["md5", "size"]), default: "md5", "What is compared."),
            KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
            KeySpec("ca_file", .path, "Certificates to trust."),
            KeySpec("connections", .integer(1...256), default: "32", "Small files at once."),
            KeySpec("max_in_flight", .integer(1...64), "Big files at once."),
        ] + networkKeys,
        fields: [
            FieldSpec("label", default: "{stem}", "What people see."), FieldSpec("on", "Where it was."),
            FieldSpec("title", "What it is called."),
        ], givesURLs: true),
    DestinationType(
        name: "s3", summary: "A bucket.",
        keys: [
            KeySpec("bucket", .string, required: true, "The bucket."),
            KeySpec("endpoint", .string, "Address of the store."),
            KeySpec("region", .string, default: "auto", "Region of signatures."),
            KeySpec("style", .choice(["auto", "path", "virtual"]), default: "auto", "Where the bucket stands."),
            KeySpec("access_key", .secret, "Access key."),
            KeySpec("secret_key", .secret, "Secret key."),
            KeySpec("session_token", .secret, "Session token."),
            KeySpec("profile", .string, "Profile."),
            KeySpec("credentials_file", .path, "Credentials file."),
            KeySpec("multipart_threshold", .bytes, default: "16MiB", "One request up to here."),
            KeySpec("part_size", .bytesOrAuto, default: "auto", "Size of a part."),
            KeySpec("parallel_parts", .integer(1...64), default: "4", "Parts at once."),
            KeySpec("max_object_size", .bytes, default: "5TiB", "The store's limit."),
            KeySpec("verify", .choice(["md5", "crc32c", "sha256", "size"]), default: "md5", "What is compared."),
            KeySpec(
                "if_exists", .choice(["overwrite", "skip-same", "version", "fail"]), default: "overwrite",
                "When the key is taken."),
            KeySpec("storage_class", .string, "Storage class."),
            KeySpec("cache_control", .string, "Cache-Control."),
            KeySpec("metadata", .map(.string), "User metadata."),
            KeySpec("acl", .string, "Canned ACL."),
            KeySpec("public_url", .string, "Where objects can be read."),
            KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
            KeySpec("ca_file", .path, "Certificates to trust."),
            KeySpec("connections", .integer(1...256), default: "32", "Small files at once."),
            KeySpec("max_in_flight", .integer(1...64), "Big files at once."),
        ] + networkKeys, givesURLs: true),
    DestinationType(
        name: "folder", summary: "A folder.",
        keys: [
            KeySpec("path", .path, required: true, "The folder."),
            KeySpec("verify", .choice(["read-back", "size"]), default: "read-back", "What is compared."),
            KeySpec("min_free", .bytes, default: "0", "Space that must stay free."),
        ], folderKey: "path"),
    gigHiveStandIn, vopiStandIn, roboscopeStandIn,
]

/// What all that go over the network have.
let networkKeys = BandwidthKeys().specs + [ProxyKeys.key().spec]

private let gigHiveStandIn = DestinationType(
    name: "gighive", summary: "A GigHive server.",
    keys: [
        KeySpec("url", .string, required: true, "Its address."), KeySpec("user", .string, "The user."),
        KeySpec("password", .secret, "The password."), KeySpec("upload_token", .secret, "A guest's token."),
        KeySpec("tos_accepted", .boolean, default: "false", "Accept the terms."),
        KeySpec("display_name", .string, "The guest's name."),
        KeySpec("transport", .choice(["auto", "multipart", "tus"]), default: "auto", "The way."),
        KeySpec("chunk_size", .bytes, default: "8MiB", "A request."),
        KeySpec("multipart_limit", .bytes, default: "64MiB", "The largest form."),
        KeySpec("max_upload_bytes", .bytes, default: "6442450944", "The server's limit."),
        KeySpec("max_in_flight", .integer(1...16), default: "2", "Files at once."),
        KeySpec("finalize_for", .duration(offAllowed: false), default: "15m", "How long to ask."),
        KeySpec("pin", .string, "The server's key."), KeySpec("ca_file", .path, "Certificates to trust."),
        KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
    ] + networkKeys,
    fields: [
        FieldSpec("label", default: "{stem}", "What people see."), FieldSpec("org_name", default: "Band", "Who."),
        FieldSpec("event_date", default: "{mtime:yyyy-MM-dd}", "When."),
        FieldSpec("event_type", default: "band", "What."), FieldSpec("keywords", "Words to find it by."),
    ], takesSidecars: false)

let standInEnvironment = [
    "SPIRAL_KEY": "canary-spiral", "MAIN_KEY": "canary-main", "SECOND_KEY": "canary-second", "CANARY": "canary-value",
    "API_HOST": "storage.example", "EMPTY": "", "S3_ACCESS_KEY": "canary-access", "S3_SECRET_KEY": "canary-s3",
    "GIGHIVE_PASSWORD": "canary-gighive", "VOPI_KEY": "canary-vopi", "HOOK_SECRET": "canary-hook",
    "ROBOSCOPE_TOKEN": "canary-roboscope",
]

/// A place where no file is.
let standInDefaults = ConfigDefaults(
    stateDirectory: "/var/lib/inlet", home: "/nowhere/user", workingDirectory: "/nowhere")

func parse(_ text: String, file: FilePath = "inlet.yaml") throws(ConfigErrors) -> LoadedConfig {
    try ConfigFile.parse(
        text: text, file: file, types: standInTypes, environment: standInEnvironment, defaults: standInDefaults)
}

/// What is wrong with `text`, as printed; an empty text when nothing is.
func complaints(_ text: String) -> String { complaints(Array(text.utf8), file: "inlet.yaml") }

func complaints(_ bytes: [UInt8], file: FilePath) -> String {
    do throws(ConfigErrors) {
        _ = try ConfigFile.parse(
            bytes: bytes, file: file, types: standInTypes, environment: standInEnvironment, defaults: standInDefaults)
        return ""
    } catch {
        return error.description
    }
}
