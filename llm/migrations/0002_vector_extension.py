from django.db import migrations
from pgvector.django import VectorExtension


class Migration(migrations.Migration):
    """Embeddings are columns of pgvector's type; the extension comes before the first of them."""

    dependencies = [("llm", "0001_initial")]

    operations = [VectorExtension()]
