FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md constraints.txt ./
COPY platform platform
COPY alembic alembic
COPY policies policies
RUN python -m venv /opt/memplane \
 && pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && /opt/memplane/bin/pip install --no-cache-dir --constraint constraints.txt /wheels/memplane-*.whl

FROM python:3.13-slim
COPY --from=build /opt/memplane /opt/memplane
RUN useradd --system --uid 10001 --create-home memplane \
 && install --directory --owner=memplane --mode=0700 /home/memplane/ledger
USER memplane
WORKDIR /home/memplane
ENV PATH=/opt/memplane/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 7077
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --start-interval=1s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7077/readyz', timeout=2)"]
ENTRYPOINT ["memplane"]
CMD ["serve"]
